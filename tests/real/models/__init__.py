"""Real programs, small: each file has `CASES`, programs that are run as they are and captured (see `tests.real.case`)."""
