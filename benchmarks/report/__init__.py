"""The page that is made of the results: `docs/benchmarks.md` and its pictures."""
