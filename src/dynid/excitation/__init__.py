"""Motions that show a robot's parameters: shapes, limits, criteria, designs and files to play.

>>> import dynid
>>> from dynid.excitation.limits import limits_of, margins_of
>>> from dynid.excitation.shapes import random_fourier
>>> robot = dynid.demo_robot()
>>> motion = random_fourier(robot, period_s=10.0, harmonics=3)
>>> margins_of(robot, motion, limits_of(robot)).smallest > 0.0
True
"""
