/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files out of names of values. */
#include "file_names.h"

#include <stdio.h>
#include <string.h>

#include "must.h"

char *file_of_name(const char *folder, const char *name, const char *ending)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    char *path = must_allocate((int64_t)(strlen(folder) + strlen(name) + strlen(ending) + 2), 1);
    size_t n = (size_t)sprintf(path, "%s/", folder);
    for (const char *at = name; *at; at++)
        path[n++] = !strchr(allowed, *at) || (at == name && *at == '.') ? '_' : *at;
    strcpy(path + n, ending);
    return path;
}
