# Grid Engine of one host in namespaces of its own: run by `unshare`, with a directory, as root.
# Nothing of the machine's own installation is written to.
set -e
place=$1
mount --make-rprivate /
ip link set lo up
ip addr add 10.9.9.9/32 dev lo
hostname sgehost
printf '127.0.0.1 localhost\n10.9.9.9 sgehost\n' >"$place/hosts"
mount --bind "$place/hosts" /etc/hosts
cp -a /var/spool/gridengine "$place/spool"
mount --bind "$place/spool" /var/spool/gridengine
cp -a /var/lib/gridengine/default "$place/cell"
mount --bind "$place/cell" /var/lib/gridengine/default
echo sgehost >/var/lib/gridengine/default/common/act_qmaster
: >"$place/cell/common/accounting"
chown sgeadmin "$place/cell/common/accounting"
mkdir -p "$place/run/gridengine"
chown sgeadmin "$place/run/gridengine"
mount --bind "$place/run" /run
export SGE_ND=1
start_master() {
    sge_qmaster >"$place/qmaster.log" 2>&1 &
    master=$!
    until qconf -sh >/dev/null 2>&1; do
        kill -0 "$master"
        sleep 0.1
    done
}
start_master
qconf -ah sgehost || true
qconf -as sgehost
qconf -am root || true
qconf -ssconf | sed 's/^schedule_interval.*/schedule_interval 0:0:1/; s/^flush_submit_sec.*/flush_submit_sec 1/
    s/^flush_finish_sec.*/flush_finish_sec 1/' >"$place/scheduler"
qconf -Msconf "$place/scheduler"
mkdir "$place/configuration"
qconf -sconf global | sed 's/^reporting_params.*/reporting_params accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00 joblog=false sharelog=00:00:00/' \
    >"$place/configuration/global"
qconf -Mconf "$place/configuration/global"
cat >"$place/host" <<'END'
hostname sgehost
load_scaling NONE
complex_values slots=8,exclusive=true
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
END
qconf -sc >"$place/complexes"
echo 'exclusive excl BOOL EXCL YES YES 0 0' >>"$place/complexes"
qconf -Mc "$place/complexes" >/dev/null
qconf -Ae "$place/host"
printf 'group_name @allhosts\nhostlist sgehost\n' >"$place/group"
qconf -Ahgrp "$place/group"
cat >"$place/pe" <<'END'
pe_name smp
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule $pe_slots
control_slaves FALSE
job_is_first_task TRUE
urgency_slots min
qsort_args NONE
accounting_summary FALSE
END
qconf -Ap "$place/pe"
qconf -sq | sed 's/^qname.*/qname main.q/; s/^hostlist.*/hostlist @allhosts/; s/^slots .*/slots 8/; s/^pe_list.*/pe_list smp/
    s#^shell .*#shell /bin/sh#; s/^load_thresholds.*/load_thresholds NONE/' >"$place/queue"
qconf -Aq "$place/queue"
sge_execd >"$place/execd.log" 2>&1 &
until qhost | grep -q '^sgehost  *lx'; do sleep 0.2; done
echo ready
# Words by which the test stops and starts the master; the end of them ends everything.
while read -r word; do
    case $word in
    stop) kill "$master" && wait "$master" || true ;;
    start) start_master ;;
    end) qdel -f -u '*' >/dev/null 2>&1 || true ;;
    esac
    echo done
done
