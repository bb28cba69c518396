"""A finished run as files: numbers, models, report; and the demonstration of the whole path."""
