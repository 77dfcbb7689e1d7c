/*
 * A condor_* command that has just started: the command server of its context is asked to be it, else this becomes the interpreter that
 * carries it out.  It does what `kettle.command_server.asking` does, and is compiled where there is a compiler, because an interpreter
 * takes longer to start than the command to be carried out.
 *
 * It is the interpreter that the first line of a command's file names.  The second line of that file says for whom it asks:
 *
 *     # NAME INSTALLATION PATH-OF-PYTHON
 *
 * What is asked and what is compared are the same bytes as those of `asking`, or no server would be found.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LONGEST = 1 << 17, FILE_BYTES = 1 << 16, ANSWER_BYTES = 16, STREAMS = 3, LOST = 70 };

/* Which source this was compiled from: `compiled_launcher` looks for it. */
__attribute__((used)) static const char source[] = "kettle-launch " SOURCE;

static const char *const rights[] = {
    "Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:",
    "Cpus_allowed:", "Mems_allowed:", "SigBlk:", "SigIgn:", NULL,
};
static const char *const namespaces[] = {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts", NULL};
static const char *const of_jobs[] = {"_CONDOR_JOB_AD=", "KETTLE_JOB_AD=", "KETTLE_COMMAND_SERVER=off", NULL};
static const char *const read_at_start[] = {
    "LC_", "LANG", "PYTHON", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_", "KETTLE_FAULT", NULL,
};

extern char **environ;
static char **words;
static char *interpreter;
static char order[LONGEST], content[FILE_BYTES + 1];
static size_t used;

/* Carry the command out with an interpreter of its own. */
static _Noreturn void by_itself(void)
{
    size_t count = 0;
    while (words[count])
        count++;
    char **line = calloc(count + 3, sizeof *line);
    if (line) {
        line[0] = interpreter;
        line[1] = "-IS";
        memcpy(line + 2, words, count * sizeof *line);
        execv(interpreter, line);
    }
    fprintf(stderr, "%s: %s: %s\n", words[0], interpreter, strerror(errno));
    exit(127);
}

static void add(const char *data, size_t size)
{
    if (size > sizeof order - used)
        by_itself();
    memcpy(order + used, data, size);
    used += size;
}

/* A part of the context; they stand in lines. */
static void part(const char *data, size_t size)
{
    if (used)
        add("\n", 1);
    add(data, size);
}

static void number(const char *form, int value)
{
    char text[16];
    part(text, (size_t)snprintf(text, sizeof text, form, value));
}

/* A file of the kernel as `content`, without zero bytes, which separate the parts of an order; its size, or -1. */
static ssize_t content_of(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, content, FILE_BYTES), kept = 0;
    if (fd >= 0)
        close(fd);
    for (ssize_t at = 0; at < size; at++)
        if (content[at])
            content[kept++] = content[at];
    content[kept] = '\0';
    return size < 0 ? size : kept;
}

static void file(const char *path, int always)
{
    ssize_t size = content_of(path);
    if (size < 0 && always)
        by_itself();
    part(content, size < 0 ? 0 : (size_t)size);
}

static void link_to(const char *path)
{
    ssize_t size = readlink(path, content, FILE_BYTES);
    if (size < 0)
        by_itself();
    part(content, (size_t)size);
}

static int begins(const char *text, const char *const *beginnings)
{
    for (; *beginnings; beginnings++)
        if (!strncmp(text, *beginnings, strlen(*beginnings)))
            return 1;
    return 0;
}

static int compared(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* All that this process has from its parent, and that a fork of another would not have. */
static void context(const char *installation)
{
    char path[64], *rest = content;
    if (content_of("/proc/self/status") < 0)
        by_itself();
    for (char *line; (line = strsep(&rest, "\n"));)
        if (begins(line, rights))
            part(line, strlen(line));
    file("/proc/self/limits", 1);
    file("/proc/self/cgroup", 1);
    for (const char *const *name = namespaces; *name; name++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", *name);
        link_to(path);
    }
    link_to("/proc/self/root");
    file("/proc/self/oom_score_adj", 1);
    file("/proc/self/attr/current", 0);
    file("/proc/self/loginuid", 0);
    file("/proc/self/sessionid", 0);
    number("%d", getpriority(PRIO_PROCESS, 0));
    number("%d", sched_getscheduler(0));
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **sorted = calloc(count + 1, sizeof *sorted);
    if (!sorted)
        by_itself();
    for (size_t at = 0; at < count; at++)
        if (strchr(environ[at], '=') && begins(environ[at], read_at_start))
            sorted[kept++] = environ[at];
    qsort(sorted, kept, sizeof *sorted, compared);
    for (size_t at = 0; at < kept; at++)
        part(sorted[at], strlen(sorted[at]));
    free(sorted);
    part(installation, strlen(installation));
}

/* The rest of the number that the context is, divided by the prime 2^61 - 1. */
static uint64_t remainder_of_context(void)
{
    const uint64_t prime = (UINT64_C(1) << 61) - 1;
    uint64_t rest = 0;
    for (size_t at = 0; at < used; at++) {
        rest = (rest << 8 & prime) + (rest >> 53) + (unsigned char)order[at];
        if (rest >= prime)
            rest -= prime;
    }
    return rest;
}

/* A connection with the server of the context; the directory of its socket is nobody else's, and what listens is ours. */
static int connected(void)
{
    char text[4096];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer;
    struct stat found;
    socklen_t size = sizeof peer;
    const char *given = getenv("XDG_RUNTIME_DIR");
    int length = given && *given == '/' ? snprintf(text, sizeof text, "%s/kettle", given)
                                        : snprintf(text, sizeof text, "/tmp/kettle-%u", getuid());
    if (length < 0 || (size_t)length >= sizeof text)
        by_itself();
    int line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (line < STREAMS) { /* a stream of ours is closed, and the command would have the connection in its place */
        if (line >= 0)
            close(line);
        by_itself();
    }
    int where = open(text, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (where < 0 || fstat(where, &found) || found.st_mode != (S_IFDIR | 0700) || found.st_uid != getuid())
        by_itself();
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/commands-%016llx", where,
             (unsigned long long)remainder_of_context());
    if (connect(line, (struct sockaddr *)&address, sizeof address) ||
        getsockopt(line, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.uid != getuid())
        by_itself();
    close(where);
    return line;
}

static void next(const char *data)
{
    add("", 1);
    add(data, strlen(data));
}

/* Send what is to be done, with our streams and our directory. */
static void ordered(int line, const char *name)
{
    char text[32];
    size_t count = 0;
    mode_t mask = umask(077);
    umask(mask);
    while (words[count])
        count++;
    snprintf(text, sizeof text, "%o", mask);
    next(text);
    snprintf(text, sizeof text, "%zu", count + 1);
    next(text);
    next(name);
    for (size_t at = 0; at < count; at++)
        next(words[at]);
    for (char **variable = environ; *variable; variable++)
        if (strchr(*variable, '='))
            next(*variable);
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), given[] = {0, 1, 2, here};
    union {
        struct cmsghdr aligned;
        char space[CMSG_SPACE(sizeof given)];
    } beside = {0};
    struct iovec data = {order, used};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = beside.space, .msg_controllen = sizeof beside.space};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof given);
    memcpy(CMSG_DATA(head), given, sizeof given);
    if (here < 0 || sendmsg(line, &message, 0) < 0)
        by_itself();
    close(here);
}

/* Wait for the end of the command, and end as it did. */
static int ended(int line, const char *name)
{
    char answer[ANSWER_BYTES + 1];
    ssize_t size;
    do
        size = recv(line, answer, ANSWER_BYTES, 0);
    while (size < 0 && errno == EINTR);
    if ((size < 0 && errno == ECONNRESET) || (size == 1 && *answer == 'x'))
        by_itself(); /* the order was not read, or given back: nothing has happened */
    if (size <= 0) {
        fprintf(stderr, "%s: the process that carried it out was ended; look whether it was done\n", name);
        return LOST;
    }
    answer[size] = '\0';
    int status = atoi(answer);
    if (status < 0) {
        kill(getpid(), -status);
        return 128 - status; /* a signal that does not end us */
    }
    return status;
}

int main(int count, char **line)
{
    char *rest = content, *name, *installation;
    if (count < 2 || content_of(line[1]) < 0 || !strsep(&rest, "\n") || !rest || strncmp(rest, "# ", 2)) {
        fprintf(stderr, "%s: it is the interpreter of the condor_* commands, and is told the path of one\n", line[0]);
        return 127;
    }
    words = line + 1;
    rest += 2;
    name = strdup(strsep(&rest, " "));
    installation = rest ? strdup(strsep(&rest, " ")) : NULL;
    interpreter = rest ? strdup(strsep(&rest, "\n")) : NULL;
    if (!name || !installation || !interpreter) {
        fprintf(stderr, "%s: %s is damaged: kettle condor-env writes it again\n", line[0], line[1]);
        return 127;
    }
    /* As an interpreter does when it starts: its children have them as they usually are. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    for (char **variable = environ; *variable; variable++)
        if (begins(*variable, of_jobs))
            by_itself();
    if (getuid() != geteuid() || getgid() != getegid())
        by_itself();
    context(installation);
    int server = connected();
    ordered(server, name);
    return ended(server, name);
}
