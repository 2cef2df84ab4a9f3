/* SPDX-License-Identifier: Apache-2.0 */
/* trama_onnx_load: reads the file of a model and the files of its external data. The model itself is dist/onnx's. */
#define _DEFAULT_SOURCE /* realpath, fdopen */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"
#include "trama_onnx.h"

/* The folder that external data must be in, with a final '/'; and the file that was read last. */
typedef struct external_files {
    char folder[PATH_MAX + 1];
    char reason[256];
} external_files;

/* Opens a regular file and sets its size; NULL with errno. A pipe would wait for its other end, and is not opened. */
static FILE *open_regular(const char *path, int64_t *size)
{
    struct stat s;
    FILE *f = NULL;
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        return NULL;
    if (!fstat(descriptor, &s)) {
        *size = s.st_size;
        errno = S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
        f = S_ISREG(s.st_mode) ? fdopen(descriptor, "rb") : NULL;
    }
    if (!f)
        close(descriptor);
    return f;
}

/* ---- External data ---- */

static trama_status refuse(external_files *e, const char **reason, trama_status status, const char *words)
{
    snprintf(e->reason, sizeof e->reason, "%s", words);
    *reason = e->reason;
    return status;
}

static trama_status read_at(external_files *e, FILE *f, int64_t size, int64_t offset, int64_t bytes, void *to,
                            const char **reason)
{
    if (offset > size || bytes > size - offset)
        return refuse(e, reason, TRAMA_E_ARGUMENT, "the file is too short");
    if (fseeko(f, offset, SEEK_SET) || fread(to, 1, (size_t)bytes, f) != (size_t)bytes)
        return refuse(e, reason, TRAMA_E_SYSTEM, "the file cannot be read");
    return TRAMA_OK;
}

/* The location is relative to the folder of the model. Links may lead elsewhere within that folder. */
static trama_status read_external(void *data, const char *location, int64_t offset, int64_t bytes, void *to,
                                  const char **reason)
{
    external_files *e = data;
    char path[2 * PATH_MAX + 2], real[PATH_MAX + 1];
    int64_t size = 0;
    if (*location == '/' || strlen(location) >= PATH_MAX)
        return refuse(e, reason, TRAMA_E_ARGUMENT, "the location is not relative to the folder of the model");
    snprintf(path, sizeof path, "%s%s", e->folder, location);
    if (!realpath(path, real))
        return refuse(e, reason, TRAMA_E_SYSTEM, strerror(errno));
    if (strncmp(real, e->folder, strlen(e->folder)))
        return refuse(e, reason, TRAMA_E_ARGUMENT, "the location leaves the folder of the model");
    FILE *f = open_regular(real, &size);
    if (!f)
        return refuse(e, reason, TRAMA_E_SYSTEM, strerror(errno));
    trama_status status = read_at(e, f, size, offset, bytes, to, reason);
    fclose(f);
    return status;
}

/* ---- The model ---- */

static void folder_of(const char *file, char folder[PATH_MAX + 1])
{
    char path[PATH_MAX + 1];
    const char *end = strrchr(file, '/');
    snprintf(path, sizeof path, "%.*s", end ? (int)(end - file + 1) : 1, end ? file : ".");
    if (!realpath(path, folder))
        *folder = 0;
    size_t n = strlen(folder);
    if (n < PATH_MAX && (!n || folder[n - 1] != '/'))
        strcpy(folder + n, "/");
}

/* The content of a file, which the caller frees; NULL with an error on the program. */
static void *read_model(trama_where where, trama_program *program, const char *file, size_t *bytes)
{
    int64_t size = 0;
    FILE *f = open_regular(file, &size);
    if (!f)
        return program_fail(program, where, TRAMA_E_SYSTEM, "%s: %s", file, strerror(errno));
    void *content = trama_try_alloc((size_t)size);
    *bytes = content ? fread(content, 1, (size_t)size, f) : 0;
    fclose(f);
    if (content && *bytes == (size_t)size)
        return content;
    bool read = content;
    free(content);
    return program_fail(program, where, read ? TRAMA_E_SYSTEM : TRAMA_E_MEMORY,
                        read ? "%s: it cannot be read to its end" : "%s: there is no memory for it", file);
}

trama_onnx *trama_onnx_load_at(trama_where where, trama_program *program, const char *file,
                               const trama_onnx_options *options)
{
    if (!program || !file)
        return program_fail(program, where, TRAMA_E_ARGUMENT, "trama_onnx_load: the %s is NULL",
                            program ? "file" : "program");
    if (program->status)
        return NULL;
    external_files external;
    trama_onnx_source source = {.size = sizeof source, .name = file, .read = read_external, .data = &external};
    void *content = read_model(where, program, file, &source.bytes);
    if (!content)
        return NULL;
    folder_of(file, external.folder);
    source.model = content;
    trama_onnx *model = trama_onnx_create_at(where, program, &source, options);
    free(content);
    return model;
}
