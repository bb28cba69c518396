"""Estimators: methods that turn a regression into parameters, one file a method."""
