/* SPDX-License-Identifier: Apache-2.0 */
/* Names of element types and of files in the format safetensors. It reads and writes nothing. */
#include "safetensors.h"

#include <string.h>

static const struct {
    const char *name;
    trama_dtype dtype;
} dtypes[] = {{"F32", TRAMA_F32}, {"F64", TRAMA_F64}, {"BF16", TRAMA_BF16}, {"F16", TRAMA_F16}, {"BOOL", TRAMA_BOOL},
              {"I8", TRAMA_I8},   {"I16", TRAMA_I16}, {"I32", TRAMA_I32},   {"I64", TRAMA_I64}, {"U8", TRAMA_U8},
              {"U16", TRAMA_U16}, {"U32", TRAMA_U32}, {"U64", TRAMA_U64},   {"C64", TRAMA_C64}};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

const char *safetensors_name_of(trama_dtype dtype)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

trama_dtype safetensors_dtype_of(const char *name)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (!strcmp(dtypes[i].name, name))
            return dtypes[i].dtype;
    return TRAMA_N_DTYPES;
}

bool path_is_safetensors(const char *path)
{
    return path_has_ending(path, ".safetensors") || path_has_ending(path, ".safetensors.index.json");
}

bool path_is_index(const char *path)
{
    return path_has_ending(path, index_ending);
}
