"""All benchmarks, one after the other: `make bench`."""

from benchmarks import dynamic, end_to_end, ingest, overhead, stopwatch, web, web_load, xplane

overhead.main()
stopwatch.main()
end_to_end.main()
ingest.main()
xplane.main()
web.main()
web_load.main()
dynamic.main()
