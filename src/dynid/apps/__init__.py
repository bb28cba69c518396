"""Applications: each holds its options, its method, its section of the report and its verb."""
