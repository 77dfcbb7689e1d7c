#!/bin/sh
# Stands for the commands of Slurm, under their names: a journal of jobs in $FAKE_SLURM, which tests read and write.
#
# A line of the journal: number|name|state|reason|wait status|script.  The last line of a number counts.
# $FAKE_SLURM/mode: words that say how it misbehaves.  $FAKE_SLURM_NODE: a program behind which jobs run.
mode=
[ ! -e "$FAKE_SLURM/mode" ] || read -r mode <"$FAKE_SLURM/mode"
me=${0##*/}
echo "$me" >>"$FAKE_SLURM/asked"
is() { case " $mode " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
last() { awk -F'|' '{ line[$1] = $0 } END { for (id in line) print line[id] }' "$FAKE_SLURM/journal"; }
# The group of a job, unless it has ended without a line in the journal: its number may be somebody else's by now.
runs_still() { pid=$(cat "$script.pid" 2>/dev/null) && grep -qzF "FAKE_SLURM=$FAKE_SLURM" "/proc/$pid/environ" 2>/dev/null; }
# Whether its jobs are at the cluster `other`, and that is not asked for.
elsewhere() { is parted || return 1; for each; do [ "$each" != --clusters=other ] || return 1; done; }
tell() { echo "$1|$2|$3|$4|$5|$6" >>"$FAKE_SLURM/journal"; }
is motd && echo 'Welcome! | This is | RUNNING | a login | node | of ours | 1 | 2 |'
if is down; then
    echo "$me: error: Unable to contact slurm controller (connect failure)" >&2
    exit 1
fi
if is french && [ "$LC_ALL" != C ] && [ "$LC_ALL" != C.UTF-8 ]; then
    echo "$me: erreur : le contrôleur ne répond pas" >&2
    exit 1
fi
case $me in
sbatch)
    exec 9>"$FAKE_SLURM/lock"
    flock 9
    number=100
    [ ! -e "$FAKE_SLURM/next" ] || read -r number <"$FAKE_SLURM/next"
    echo $((number + 1)) >"$FAKE_SLURM/next"
    exec 9>&-
    script=$FAKE_SLURM/script.$number
    name=
    while IFS= read -r line; do
        case $line in '#SBATCH --job-name='*) name=${line#*=} ;; esac
        printf '%s\n' "$line"
    done >"$script"
    if is full; then
        echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user'\''s size and/or time limits)' >&2
        exit 1
    fi
    tell "$number" "$name" PENDING None 0 "$script"
    if is runs; then
        tell "$number" "$name" RUNNING None 0 "$script"
        (
            # Its number is known before it looks whether it was cancelled, and it is cancelled before its number is looked
            # for: one of the two sees the other, however late this process comes to its group of its own.
            setsid sh -c 'echo $$ >"$2.pid"
                [ ! -e "$2.cancelled" ] || exit
                SLURM_JOB_ID=$1 $FAKE_SLURM_NODE sh "$2" >/dev/null 2>&1; s=$?
                w=$((s << 8)); word=COMPLETED; [ $s = 0 ] || word=FAILED
                [ -e "$2.cancelled" ] || echo "$1|$3|$word|None|$w|$2" >>"$4"' \
                sh "$number" "$script" "$name" "$FAKE_SLURM/journal" </dev/null >/dev/null 2>&1 &
        )
    fi
    while is deaf && kill -0 "$PPID" 2>/dev/null; do sleep 0.2; done # it ends with who waits for it
    is parted && number="$number;other"
    echo "$number"
    ;;
squeue)
    names= ; for each; do case $each in --name=*) names=,${each#--name=}, ;; esac; done
    is vanished && exit 0
    is forgotten && exit 0
    elsewhere "$@" && exit 0
    if is stranger; then
        for each; do case $each in --user=*) echo 'squeue: error: Invalid user: leaver' >&2; exit 0 ;; esac; done
    fi
    # At once, and not line by line: of 20,000 jobs Slurm itself tells within half a second.
    awk -F'|' -v names="$names" '{ line[$1] = $0 } END {
        for (id in line) {
            split(line[id], f, "|")
            if (names == "" || index(names, "," f[2] ","))
                printf "%-10s|%-12s|%s|%s|node1|%s|0|0|\n", f[1], f[3], f[4], f[2], f[5]
        }
    }' "$FAKE_SLURM/journal"
    ;;
sacct)
    is unbooked && exit 0
    elsewhere "$@" && exit 0
    is unaccounted && { echo 'sacct: error: Problem talking to the database: Connection refused' >&2; exit 1; }
    last | while IFS='|' read -r number name state reason status script; do
        echo "$number|$name|$state|$((status >> 8)):$((status & 127))|0|0|00:01.500|"
        echo "$number.batch|batch|$state|$((status >> 8)):$((status & 127))|0|0|00:01.500|2048K"
    done
    ;;
scancel)
    for each; do number=$each; done
    wanted= ; for each; do case $each in --jobname=*) wanted=${each#--jobname=} ;; esac; done
    line=$(last | grep "^$number|")
    is forgotten && line=
    [ -n "$line" ] || { echo "scancel: error: Kill job error on job id $number: Invalid job id specified" >&2; exit 1; }
    IFS='|' read -r number name state reason status script <<END
$line
END
    [ -z "$wanted" ] || [ "$wanted" = "$name" ] || exit 0
    case $state in PENDING | RUNNING | SUSPENDED) ;; *) exit 0 ;; esac
    : >"$script.cancelled"
    runs_still && kill -KILL "-$pid" 2>/dev/null # dash takes no `--`
    tell "$number" "$name" CANCELLED None 15 "$script"
    ;;
scontrol)
    [ "$1" = ping ] && { echo 'Slurmctld(primary) at fake is UP'; exit 0; }
    verb=$1 number=$2
    line=$(last | grep "^$number|")
    IFS='|' read -r number name state reason status script <<END
$line
END
    case $verb in
    hold) tell "$number" "$name" PENDING JobHeldUser 0 "$script" ;;
    release) tell "$number" "$name" PENDING None 0 "$script" ;;
    suspend) tell "$number" "$name" SUSPENDED None 0 "$script" ;;
    resume) tell "$number" "$name" RUNNING None 0 "$script" ;;
    esac
    ;;
esac
