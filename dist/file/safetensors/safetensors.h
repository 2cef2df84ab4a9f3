/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of the format safetensors share this: names of element types, the limits of headers.
 *
 * A file is the length of its header in 8 little-endian bytes, the header, and the contents without gaps. The header is
 * JSON: {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}, where
 * offsets count from the first byte of the contents. An index of shards is JSON: {"weight_map": {"name": "file"}}.
 * Source: https://github.com/huggingface/safetensors, "Format". */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include "checkpoint.h"

enum { MOST_HEADER = 100000000 /* as in the package */, HEADER_ALIGNMENT = 8 };

static const char metadata_name[] = "__metadata__", index_ending[] = ".index.json";

/* The name of an element type in headers; NULL where the format lacks it. The reverse; TRAMA_N_DTYPES where Trama does.
 */
const char *safetensors_name_of(trama_dtype dtype);
trama_dtype safetensors_dtype_of(const char *name);

bool path_is_index(const char *path);

/* safetensors_read.c */
trama_status safetensors_open(trama_checkpoint *c);
trama_status safetensors_open_unfinished(trama_checkpoint *c);

#endif
