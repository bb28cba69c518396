"""Compiled kernels, regressors, inverse and forward dynamics, closed chains, simulation."""
