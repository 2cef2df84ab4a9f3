/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints as files: opened, listed, verified and read by one process, without a context. trama_save.h writes them.
 * The end of the name tells the format: *.safetensors, *.safetensors.index.json, *.npz, *.npy, and of all other names
 * HDF5. A folder is a checkpoint whose states are its arrays of NumPy, each NAME.npy the state NAME.
 *
 * A checkpoint of HDF5 is a file that other programs can read. Each state is one global dataset of the root group, in
 * contiguous storage; in its name the characters / and % are written %2F and %25. The file knows no mesh, no rank and
 * no layout. Texts, such as the step, are attributes of the root group. The first bytes, which HDF5 leaves to its
 * users, are the seal: check sums of every dataset and of all other bytes. A file without its seal is no checkpoint.
 *
 * A file of safetensors has the same states under names of any UTF-8 text, and texts, its "__metadata__"; an index
 * names the files of several shards, in its own folder. There are no check sums. Headers are refused whose tensors
 * overlap, leave gaps, lie outside of the file, or have the bytes of another shape; E_DTYPE for elements that Trama
 * lacks, as F8_E4M3. Contents are read box by box; no file is mapped, so that a file that shrinks is an error and no
 * signal. */
#ifndef TRAMA_CHECKPOINT_H
#define TRAMA_CHECKPOINT_H

#include "trama_base.h"

TRAMA_API_BEGIN

/* An open checkpoint. */
typedef struct trama_checkpoint trama_checkpoint;

/* Opens a checkpoint file, and verifies its size and all bytes but those of the states. Not collective. Errors, which
 * name the file: E_SYSTEM where it cannot be read or is damaged, E_ARGUMENT where it is no checkpoint, E_DTYPE,
 * E_SHAPE, E_UNSUPPORTED without HDF5, or without cJSON for safetensors. */
trama_status trama_checkpoint_open(const char *path, trama_checkpoint **checkpoint);

/* Closes it and nulls *checkpoint; NULL is allowed. */
void trama_checkpoint_destroy(trama_checkpoint **checkpoint);

/* The file; "" of NULL. */
const char *trama_checkpoint_path(const trama_checkpoint *checkpoint);

/* The step that trama_save was given; -1 of NULL. */
int64_t trama_checkpoint_step(const trama_checkpoint *checkpoint);

/* The text of a key: the user's own, "trama.version", "trama.program" (a hash of names, shapes and element types of all
 * states), "trama.cycle.T" (the position of target T in its cycle), "trama.feeder.F" (the place of feeder F in its
 * data). NULL where there is none. It lives as long as the checkpoint. */
const char *trama_checkpoint_get(const trama_checkpoint *checkpoint, const char *key);

/* The number of keys, and key i in the order of the file; 0 and NULL where there is none. */
int trama_checkpoint_key_count(const trama_checkpoint *checkpoint);
const char *trama_checkpoint_key(const trama_checkpoint *checkpoint, int i);

/* The number of states, and number i of them in the order of names: its name, which lives as long as the checkpoint,
 * its element type and its shape. NULL and zeros where there is none. trama_checkpoint_find gives the number of a name,
 * or -1. */
int trama_checkpoint_count(const trama_checkpoint *checkpoint);
const char *trama_checkpoint_name(const trama_checkpoint *checkpoint, int i);
trama_dtype trama_checkpoint_dtype(const trama_checkpoint *checkpoint, int i);
trama_shape trama_checkpoint_shape(const trama_checkpoint *checkpoint, int i);
int trama_checkpoint_find(const trama_checkpoint *checkpoint, const char *name);

/* Whether the format has check sums, so that trama_checkpoint_verify finds damage. */
bool trama_checkpoint_is_summed(const trama_checkpoint *checkpoint);

/* Reads the content of state i and compares its check sum, where the format has one. E_SYSTEM, naming file and dataset,
 * where it is damaged. */
trama_status trama_checkpoint_verify(const trama_checkpoint *checkpoint, int i);

/* Reads state i, or a box of it, into data [extent] row-major; bytes is the size of data. Box: offset and extent of
 * each dim. Verifies nothing. E_ARGUMENT for a box outside, E_SHAPE for another size, E_SYSTEM where the file cannot be
 * read. */
trama_status trama_checkpoint_read(const trama_checkpoint *checkpoint, int i, void *data, size_t bytes);
trama_status trama_checkpoint_read_box(const trama_checkpoint *checkpoint, int i, const int64_t *offset,
                                       const int64_t *extent, void *data, size_t bytes);

/* The options of trama_checkpoint_write. A zeroed struct writes all states as they are. */
typedef struct trama_checkpoint_write_options {
    size_t size;         /* trama_base.h, "Structs that may grow" */
    const char *states;  /* patterns between commas, such as "w*,b?"; NULL: all states */
    const char *names;   /* other names in the new file, such as "w=weight,b=bias"; NULL: none */
    const char *dtype;   /* floats of this type in the new file, such as "bf16"; NULL: of their own */
    int64_t shard_bytes; /* as in trama_save_options */
} trama_checkpoint_write_options;

/* Writes the states and texts of an open checkpoint of any format as another file, .h5, .safetensors or .npz, by this
 * process alone, in 8 MiB of memory. The file takes its name when it is complete. It verifies check sums that it reads.
 * An archive .npz has no texts.
 * options may be NULL. Errors as of trama_save. */
trama_status trama_checkpoint_write(const trama_checkpoint *checkpoint, const char *path,
                                    const trama_checkpoint_write_options *options);

/* After trama_load: the names of states that the file did not have, and of states of the file that were not loaded,
 * each followed by a newline; "" where there is none. */
const char *trama_checkpoint_missing(const trama_checkpoint *checkpoint);
const char *trama_checkpoint_left_over(const trama_checkpoint *checkpoint); /* as above */

TRAMA_API_END
#endif
