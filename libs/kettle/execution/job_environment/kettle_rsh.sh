#!/bin/bash
# kettle_rsh NODE COMMAND...: run a command beside another node of this job, as rsh would on another host.
#
# NODE is its number, nodeNUMBER, or its host where no other node is on that.  The starter of this job is asked, at the address in
# its .chirp.config, and nothing else is needed: no account, no key, no port of that machine.  The command is a line for its
# /bin/sh; it begins in the same directory as this one, has no input, and ends with this program.  Variables that
# KETTLE_MPI_ENV names are the same there.  What other launchers take as options is ignored.
set -uf
LC_ALL=C

fail() {
    echo "kettle_rsh: $1" >&2
    exit 255
}

quoted() {
    local quote="'\\''"
    printf "'%s'" "${1//\'/"$quote"}"
}

while [[ ${1:-} == -* ]]; do
    [[ $1 == -l || $1 == -o || $1 == -p ]] && shift
    shift
done
(($# >= 2)) || fail "usage: kettle_rsh NODE COMMAND..."
place=$1
shift

if [[ $place =~ ^(node)?([0-9]{1,4})$ ]]; then
    node=$((10#${BASH_REMATCH[2]}))
else
    node=
    number=0
    while read -r host; do
        if [[ $host == "$place" ]]; then
            [[ -z $node ]] || fail "$place has several nodes of this job; name one by its number, such as node$number"
            node=$number
        fi
        number=$((number + 1))
    done < "${MACHINE_FILE:-/dev/null}"
    [[ -n $node ]] || fail "this job has no node on $place; its nodes are node0 to node$((${_CONDOR_NPROCS:-1} - 1))"
fi

# The sandbox of the other node has another name.
home=$(cd "$_CONDOR_SCRATCH_DIR" && pwd -P)
here=$(pwd -P)
if [[ $here == "$home" || $here == "$home"/* ]]; then
    command="cd \"\$_CONDOR_SCRATCH_DIR\"$(quoted "${here#"$home"}") || exit; "
else
    command="cd $(quoted "$here") || exit; "
fi
for name in OMP_NUM_THREADS ${KETTLE_MPI_ENV:-}; do
    [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ && -v $name ]] && command+="export $name=$(quoted "${!name}"); "
done
command+=$*

read -r host port cookie < "${_CONDOR_CHIRP_CONFIG:-.chirp.config}" || fail "this is no job that may ask its starter anything"
{ exec 3<> "/dev/tcp/$host/$port"; } 2> /dev/null || fail "the starter of this job does not listen any more"
printf 'cookie %s\nkettle_node %s %s\n%s' "$cookie" "$node" "${#command}" "$command" >&3
read -r known <&3 && [[ $known == 0 ]] || fail "the starter of this job does not know its cookie"
read -r taken <&3 && [[ $taken == 0 ]] || fail "this job has no other nodes: it is not of the parallel universe"
while read -r kind said <&3; do
    case $kind in
        out) printf %b "$said" ;;
        err) printf %b "$said" >&2 ;;
        exit) exit "$said" ;;
        refused) fail "$(printf %b "$said")" ;;
    esac
done
fail "the job ends"
