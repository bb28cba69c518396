"""Identified robots as files that simulators and controllers load, each with a proof by reloading it."""
