"""The command line: reads words, calls what is below, writes tables or JSON."""
