/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a checkpoint, written: texts as attributes, and datasets with a place and without content. One process
 * writes it; all processes then write content at these places, without HDF5. HDF5 itself writes to memory only: after a
 * write that failed, it cannot close a file, and crashes at the end of the process. */
#define _GNU_SOURCE /* SEEK_DATA */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box_file.h"

#include "checkpoint.h"
#include "hdf5_types.h"

enum { PAGE = 4096 /* the user block is a multiple of it */ };

/* The name of a dataset has no / and is not "." : those and % become %XX. The caller frees. */
static char *link_name(const char *name)
{
    text t = {0};
    bool dots = !strcmp(name, ".") || !strcmp(name, "..");
    text_add(&t, "%s", *name ? "" : "%00");
    for (; *name; name++)
        text_add(&t, *name == '/' || *name == '%' || dots ? "%%%02X" : "%c", (unsigned char)*name);
    return text_take(&t);
}

static bool add_text(hid_t root, const stored_text *t)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), attribute = -1;
    bool good = H5Tset_size(type, strlen(t->text) + 1) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
    if (good)
        attribute = H5Acreate2(root, t->key, type, space, H5P_DEFAULT, H5P_DEFAULT);
    good = good && attribute >= 0 && H5Awrite(attribute, type, t->text) >= 0;
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    return good;
}

/* Places are given at once and filled by nobody: the file is written without HDF5. */
static hid_t placing(void)
{
    hid_t p = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(p, H5D_CONTIGUOUS);
    H5Pset_alloc_time(p, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(p, H5D_FILL_TIME_NEVER);
    H5Pset_obj_track_times(p, false); /* equal states give equal bytes */
    return p;
}

static bool add_dataset(hid_t root, hid_t how, const stored_tensor *t)
{
    hsize_t extents[TRAMA_MAX_NDIM + 1];
    for (int d = 0; d < t->shape.ndim; d++)
        extents[d] = (hsize_t)t->shape.dim[d];
    char *name = link_name(t->name);
    hid_t type = hdf5_type_of(t->dtype), dataset = -1;
    hid_t space = t->shape.ndim ? H5Screate_simple(t->shape.ndim, extents, NULL) : H5Screate(H5S_SCALAR);
    if (type >= 0 && space >= 0)
        dataset = H5Dcreate2(root, name, type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    if (dataset >= 0)
        H5Dclose(dataset);
    H5Sclose(space);
    H5Tclose(type);
    free(name);
    return dataset >= 0;
}

static hid_t create(const trama_checkpoint *c, const char *path)
{
    hid_t creating = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_userblock(creating, seal_bytes(c->tensors.n));
    H5Pset_alignment(access, PAGE, PAGE);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creating, access);
    H5Pclose(creating);
    H5Pclose(access);
    return file;
}

static const char *write_all(const trama_checkpoint *c, const char *path)
{
    hid_t file = create(c, path), how = placing();
    const char *wrong = file < 0 ? "cannot be created" : NULL;
    for (int i = 0; i < c->texts.n && !wrong; i++)
        wrong = add_text(file, &c->texts.at[i]) ? NULL : c->texts.at[i].key;
    for (int i = 0; i < c->tensors.n && !wrong; i++)
        wrong = add_dataset(file, how, &c->tensors.at[i]) ? NULL : c->tensors.at[i].name;
    H5Pclose(how);
    if (file >= 0 && H5Fclose(file) < 0 && !wrong)
        wrong = "cannot be written";
    return wrong;
}

/* ---- From memory to the disk ---- */

/* A limit of file sizes holds for files in memory, too. */
static bool may_be_as_large(const trama_checkpoint *c)
{
    struct rlimit limit;
    int64_t bytes = (int64_t)seal_bytes(c->tensors.n) + 64 * PAGE;
    for (int i = 0; i < c->tensors.n; i++)
        bytes += c->tensors.at[i].bytes + 2 * PAGE;
    for (int i = 0; i < c->texts.n; i++)
        bytes += (int64_t)strlen(c->texts.at[i].text) + PAGE;
    errno = EFBIG;
    return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || (int64_t)limit.rlim_cur >= bytes;
}

/* Copies the parts that are not holes. */
static bool copy_parts(int from, int to)
{
    struct stat s;
    char *page = trama_alloc(PAGE);
    bool good = !fstat(from, &s) && !ftruncate(to, s.st_size);
    for (off_t at = 0; good && (at = lseek(from, at, SEEK_DATA)) >= 0; at += PAGE) {
        const int64_t n = min_i64(PAGE, s.st_size - at);
        good = file_read_at(from, page, n, at) && file_write_at(to, page, n, at);
    }
    free(page);
    return good;
}

static bool copy_to_disk(int memory, const char *path)
{
    int to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool good = to >= 0 && copy_parts(memory, to);
    int error = errno;
    if (to >= 0)
        close(to);
    errno = error;
    return good;
}

/* HDF5 writes the frame to the file in memory, whose name goes at once. */
static trama_status write_through(const trama_checkpoint *c, int memory, const char *name)
{
    const char *wrong = NULL;
    text path = {0};
    text_add(&path, "/dev/shm%s", name);
    H5E_BEGIN_TRY
    {
        wrong = write_all(c, path.at);
    }
    H5E_END_TRY
    free(path.at);
    shm_unlink(name);
    if (wrong)
        return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "%s: %s: HDF5 refuses it", c->path, wrong);
    return copy_to_disk(memory, c->path) ? TRAMA_OK : checkpoint_failed(c->path, "cannot be created", errno);
}

trama_status hdf5_write_frame(const trama_checkpoint *c)
{
    static _Atomic int made;
    char name[60];
    snprintf(name, sizeof name, "/trama-frame-%ld-%d", (long)getpid(), made++);
    if (!may_be_as_large(c))
        return checkpoint_failed(c->path, "cannot be created", errno);
    int memory = shm_open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (memory < 0)
        return checkpoint_failed(c->path, "no shared memory for its frame", errno);
    trama_status status = write_through(c, memory, name);
    close(memory);
    return status;
}
