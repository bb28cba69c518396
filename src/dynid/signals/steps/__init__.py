"""Processing steps: what is done to the signals of a log before they become samples.

Steps are values; :func:`dynid.process` applies them in order:

    >>> import dynid
    >>> from dynid.signals.steps.cuts import TrimToMotion
    >>> steps = [TrimToMotion(), dynid.LowPass(cutoff_hz=8.0), dynid.Differentiate()]
    >>> samples = dynid.process(dynid.demo_recording(seconds=4.0), steps)
    >>> samples.acceleration.shape == samples.torque.shape
    True

``clock`` resamples, decimates, shifts and averages periods, ``filters`` smooths and differentiates, ``cuts`` leaves parts out and
unwraps. A step of your own derives from :class:`~dynid.signals.steps.step.Step`.
"""
