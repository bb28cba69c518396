"""The commands for one kind of user, with his or her files filled in."""
