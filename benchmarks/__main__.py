"""All benchmarks, one after the other: `make bench`."""

from benchmarks import (
    dynamic,
    end_to_end,
    ingest,
    long_run,
    overhead,
    stopwatch,
    web,
    web_load,
    xplane,
)
from benchmarks.summary import catalogue, charts, export, log

overhead.main()
stopwatch.main()
end_to_end.main()
ingest.main()
long_run.main()
xplane.main()
web.main()
web_load.main()
dynamic.main()
export.main()
log.main()
charts.main()
catalogue.main()
