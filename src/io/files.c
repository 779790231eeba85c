#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

static tm_status io_failure(const char *what, const char *path)
{
    int e = errno;
    char text[128] = "";
    const char *reason = strerror_r(e, text, sizeof text);
    return tmi_fail(e == ENOENT ? TM_NOT_FOUND : e == ENOMEM ? TM_NOMEM : TM_IO, "%s: %s: %s", what, path, reason);
}

tm_status tmi_map_memory(void *data, size_t nbytes, void (*deleter)(void *), void *ctx, tmi_mapping **out)
{
    tmi_mapping *m = tmi_calloc(sizeof *m);
    if (!m) return TM_NOMEM;
    atomic_init(&m->refs, 1);
    m->data = data;
    m->nbytes = nbytes;
    m->deleter = deleter;
    m->ctx = ctx;
    *out = m;
    return TM_OK;
}

static tm_status map_fd(int fd, const char *path, tmi_mapping **out)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return io_failure("cannot read", path);
    TMI_REQUIRE(S_ISREG(st.st_mode), TM_IO, "cannot read: %s: not a regular file", path);
    void *data = NULL;
    size_t nbytes = (size_t)st.st_size;
    if (nbytes) {
        data = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) return io_failure("cannot map", path);
    }
    tm_status s = tmi_map_memory(data, nbytes, NULL, NULL, out);
    if (s == TM_OK) (*out)->is_file = true;
    else if (nbytes) munmap(data, nbytes);
    return s;
}

tm_status tmi_map_file(const char *path, tmi_mapping **out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return tmi_fail(TM_NOT_FOUND, "No such file or directory: %s", path);
    if (fd < 0) return io_failure("cannot open", path);
    tm_status s = map_fd(fd, path, out);
    close(fd);
    return s;
}

tmi_mapping *tmi_mapping_retain(tmi_mapping *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void tmi_mapping_release(void *mapping)
{
    tmi_mapping *m = mapping;
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
    if (m->deleter) m->deleter(m->ctx);
    if (m->is_file && m->nbytes) munmap(m->data, m->nbytes);
    tmi_free(m, sizeof *m);
}

/* The file that `path` means: a symbolic link stays one, its target is what is replaced. */
static char *resolve(const char *path)
{
    char *target = realpath(path, NULL);
    char *copy = tmi_strdup(target ? target : path);
    free(target);
    return copy;
}

static void writer_free(tmi_writer *w)
{
    if (w->path) tmi_free(w->path, strlen(w->path) + 1);
    if (w->temp) tmi_free(w->temp, w->temp_cap);
    w->path = w->temp = NULL;
}

/* A new file of a name that nobody has: mkstemp's names, but with the mode that open(2) and the umask give, or the old file's. */
static int create_beside(const char *path, char *temp, size_t n)
{
    static _Atomic unsigned counter;
    struct stat old;
    int fd = -1;
    for (int tries = 0; fd < 0 && tries < 100; tries++) {
        snprintf(temp, n, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&counter, 1));
        fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return -1;
    }
    if (fd >= 0 && stat(path, &old) == 0 && fchmod(fd, old.st_mode & 0777) != 0) errno = 0;   /* a file system without modes */
    return fd;
}

tm_status tmi_writer_open(tmi_writer *w, const char *path)
{
    *w = (tmi_writer){.fd = -1, .path = resolve(path)};
    w->temp_cap = w->path ? strlen(w->path) + 48 : 0;
    w->temp = w->path ? tmi_calloc(w->temp_cap) : NULL;
    if (!w->temp) {
        writer_free(w);
        return TM_NOMEM;
    }
    w->fd = create_beside(w->path, w->temp, w->temp_cap);
    if (w->fd >= 0) return TM_OK;
    tm_status s = io_failure("cannot write", path);
    writer_free(w);
    return s;
}

tm_status tmi_writer_put(tmi_writer *w, const void *data, size_t nbytes)
{
    const char *p = data;
    while (nbytes > 0) {
        ssize_t n = write(w->fd, p, nbytes < (1 << 30) ? nbytes : (1 << 30));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return io_failure("cannot write", w->path);
        p += n;
        nbytes -= (size_t)n;
    }
    return TM_OK;
}

/* The rename is durable once the folder is; a folder that cannot be synced (some network file systems) is no failure. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 1;
    if (n >= sizeof folder) return;
    memcpy(folder, slash ? path : ".", n);
    if (slash == path) folder[n++] = '/';
    folder[n] = 0;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

tm_status tmi_writer_commit(tmi_writer *w)
{
    bool ok = fsync(w->fd) == 0;
    ok = close(w->fd) == 0 && ok;
    w->fd = -1;
    ok = ok && rename(w->temp, w->path) == 0;
    if (!ok) {
        tm_status s = io_failure("cannot write", w->path);
        tmi_writer_abandon(w);
        return s;
    }
    sync_folder(w->path);
    writer_free(w);
    return TM_OK;
}

void tmi_writer_abandon(tmi_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    if (w->temp) unlink(w->temp);
    writer_free(w);
    w->fd = -1;
}
