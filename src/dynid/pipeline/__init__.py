"""The whole path composed once: logs in, a validated model out; saved and loaded as plain files."""
