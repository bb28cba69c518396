"""What the data check looks at, one kind of finding per file.

Every check is a function of a recording and, where it is known, the robot; it returns its findings and the facts they were
drawn from. :mod:`dynid.recording.check` lists them in the order they are made.
"""
