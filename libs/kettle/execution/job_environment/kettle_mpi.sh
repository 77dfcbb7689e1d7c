#!/bin/sh
# kettle_mpi LAUNCHER [ARGUMENT...]: run an MPI program on all nodes of this job.
#
# Node 0 runs the launcher (mpirun or mpiexec of Open MPI, MPICH or Intel MPI), told to reach the other nodes with kettle_rsh and to
# start as many ranks on each as it has CPUs, or KETTLE_RANKS.  The other nodes wait, and end with node 0.  Ranks begin in the
# directory in which this does; they have the environment of their node, and the variables that KETTLE_MPI_ENV names.
if [ $# -eq 0 ]; then
    echo "usage: kettle_mpi LAUNCHER [ARGUMENT...], such as: kettle_mpi mpirun ./solve" >&2
    exit 2
fi

if [ "${_CONDOR_PROCNO:-0}" -ne 0 ]; then
    trap 'exit 0' INT TERM
    while :; do
        sleep 3600 &
        wait $!
    done
fi

cpus=${OMP_NUM_THREADS:-1}
ranks=${KETTLE_RANKS:-$cpus}
nodes=${_CONDOR_NPROCS:-1}
launcher=$1
shift
hosts=$_CONDOR_SCRATCH_DIR/.mpi # a directory: what is in it is no result of the job
mkdir -p "$hosts" && : > "$hosts/slots" && : > "$hosts/colon" || exit
node=0
while [ "$node" -lt "$nodes" ]; do
    # Names that no machine has: each node is reached where it is, also if two are on one host, or on ours.
    name=node$node
    [ "$nodes" -gt 1 ] || name=localhost
    echo "$name slots=$ranks" >> "$hosts/slots"
    echo "$name:$ranks" >> "$hosts/colon"
    node=$((node + 1))
done

export PATH="$PATH:$_CONDOR_BIN" SHELL="${SHELL:-/bin/bash}" OMP_NUM_THREADS=$(((cpus + ranks - 1) / ranks))
# Open MPI to 4, and from 5 on; MPICH; Intel MPI
export OMPI_MCA_orte_default_hostfile="$hosts/slots" PRTE_MCA_prte_default_hostfile="$hosts/slots"
export HYDRA_HOST_FILE="$hosts/colon" I_MPI_HYDRA_HOST_FILE="$hosts/colon"
if [ "$nodes" -gt 1 ]; then
    export OMPI_MCA_plm_rsh_agent=kettle_rsh PRTE_MCA_plm_ssh_agent=kettle_rsh
    export HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=kettle_rsh
    export I_MPI_HYDRA_BOOTSTRAP=rsh I_MPI_HYDRA_BOOTSTRAP_EXEC=kettle_rsh
    # Else it would give all ranks the environment of this node, which names its directories and devices, and have them listen at
    # the names above.
    export HYDRA_ENV=none HYDRA_HOSTNAME_PROPAGATION=0
fi
# What is for all programs comes before what is for one.
everywhere=
if [ "${1:-}" = -genvnone ]; then
    everywhere=$1
    shift
fi
# To each process its own directory: that of this node has another name on others.
exec "$launcher" $everywhere -wdir /proc/self/cwd "$@"
