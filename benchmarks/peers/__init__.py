"""One program for each peer, in an environment of its own: see README.md here."""
