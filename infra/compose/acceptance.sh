#!/bin/sh
# What compose.tests.yaml runs: jobs that read a file and write one, and whether everything that they made is right.
set -eu

jobs=${KETTLE_ACCEPTANCE_JOBS:-60}
place=$(mktemp -d /jobs/acceptance.XXXXXX)
cd "$place"
echo 7 > seven
cat > sweep.sub <<'END'
executable = /bin/sh
transfer_executable = false
arguments = "-c 'read -r seven < seven; echo $((seven * $(Process))) > result'"
transfer_input_files = seven
transfer_output_files = result
transfer_output_remaps = "result = result.$(Process)"
output = out.$(Process)
error = err.$(Process)
log = sweep.log
request_memory = 32
END
echo "queue $jobs" >> sweep.sub

cluster=$(kettle submit --patience 300 sweep.sub | sed -n 's/.* cluster \([0-9]*\).*/\1/p')
kettle wait "$cluster"
sum=$(cat result.* | awk '{ sum += $1 } END { print sum }')
wanted=$((7 * jobs * (jobs - 1) / 2))
if [ "$sum" != "$wanted" ]; then
    echo "the results add up to $sum, and not to $wanted" >&2
    exit 1
fi
echo "$jobs jobs, and what they made adds up to $sum, as it should."
