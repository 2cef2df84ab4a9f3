/* SPDX-License-Identifier: Apache-2.0 */
/* JSON out of files of safetensors, and the errors of their readers. */
#ifndef SAFETENSORS_JSON_H
#define SAFETENSORS_JSON_H

#include <cJSON.h>

#include "base.h"

#define AGAIN "; write the file again, or restore it from a copy"

/* "PATH: tensor NAME: ..."; tensor NULL: of the whole file. */
__attribute__((format(printf, 4, 5))) trama_status safetensors_refuse(const char *path, trama_status status,
                                                                      const char *tensor, const char *format, ...);

/* A name from a file for a message: control characters do not reach the terminal. The caller frees it. */
char *json_shown(const char *name);

/* The object in bytes [at, at + bytes) of the file, in UTF-8; the caller deletes it. */
trama_status json_read(const char *path, int descriptor, int64_t at, int64_t bytes, cJSON **root);

/* A whole number from 0 to 2^53, which a double has exactly. */
bool json_number(const cJSON *item, int64_t *x);

/* The one member of that name; NULL where there is none, or more. */
const cJSON *json_member(const cJSON *object, const char *name);

#endif
