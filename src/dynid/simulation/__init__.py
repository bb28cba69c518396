"""Motion of a robot under a tracking controller, and the log an instrumented robot would have written of it.

    M(q) a = tau - c(q, v) - g(q) - friction(v),      tau = control(encoder readings, reference)

Forward dynamics is Pinocchio's articulated-body algorithm with rotor inertia, independent of the regressor that later
explains the log. The controller knows the robot only roughly and sees quantised encoders, so tracking is imperfect.
Its torque is held between control ticks; the motion between them is integrated by classical Runge-Kutta steps of
fourth order, as many per tick as the steepest friction needs, or by implicit ones (:mod:`dynid.simulation.stiff`) where these
would be many. On the demonstration arm that is 2 steps of 0.5 ms, and
the motion over 10 s differs from that with eight times as many by 6e-9 rad and 1.1e-5 rad/s, far below what encoders
resolve.

At a tick the held torque jumps. A row of the log has the mean of both values, ``(tau_before + tau_after) / 2``, and
the true acceleration belongs to that torque, so ``tau = Y(q, v, a) phi`` holds exactly and with no delay of half a
tick.
"""

from dynid.simulation.controllers import ComputedTorque, ControlLaw, Controller, GravityPD
from dynid.simulation.tracked import SimulatedRecording, exact_motion, simulate
from dynid.simulation.values import effect_values, told_effects, with_effect

__all__ = [
    "ComputedTorque",
    "ControlLaw",
    "Controller",
    "GravityPD",
    "SimulatedRecording",
    "effect_values",
    "exact_motion",
    "simulate",
    "told_effects",
    "with_effect",
]
