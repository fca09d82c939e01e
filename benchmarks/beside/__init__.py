"""Side by side: the same workloads on ours and on the others, each on servers of its own."""
