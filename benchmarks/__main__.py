"""All benchmarks, one after the other: `make bench`."""

from benchmarks import end_to_end, overhead, stopwatch

overhead.main()
stopwatch.main()
end_to_end.main()
