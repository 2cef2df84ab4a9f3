/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the program, with a message, where something fails. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "must.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void fail(const char *format, ...)
{
    char message[2048]; /* one write, so that messages of several ranks do not mix */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, message);
    exit(EXIT_FAILURE);
}

void must(trama_status status)
{
    if (status)
        fail("%s", trama_error());
}

void *must_allocate(int64_t count, size_t size)
{
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);
    if (!memory)
        fail("no memory for %lld elements of %zu bytes", (long long)count, size);
    return memory;
}

bool close_written(FILE *file)
{
    bool failed = ferror(file);
    int error = fflush(file) ? errno : failed ? EIO : 0; /* the reason for an earlier failure is not kept */
    if (fclose(file) && !error)
        error = errno;
    errno = error ? error : errno;
    return !error;
}
