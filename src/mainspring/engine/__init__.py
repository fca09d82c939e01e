"""The loops: claim, run, settle, beat, reap, prune, fire. Each does one pass and says how long to wait."""
