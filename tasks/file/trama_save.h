/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: the state of an executable in a file, and back, on any mesh and any number of ranks. The same calls save
 * and load files of safetensors.
 *
 *     int64_t step = 0;
 *     trama_checkpoint *found;
 *     trama_load(run, "runs/a", NULL, &found);
 *     if (found)
 *         step = trama_checkpoint_step(found);
 *     trama_checkpoint_destroy(&found);
 *     while (step < 1000) {
 *         trama_run(run, train);
 *         if (++step % 100 == 0)
 *             trama_save(run, "runs/a", &(trama_save_options){.step = step, .keep = 3});
 *     }
 *
 * The first call loads the newest checkpoint of the folder, where there is one: one program begins and goes on.
 *
 * A checkpoint holds the state that trama_state.h lists, the position of each target that accumulates gradients, and the place
 * of each feeder in its data (trama_feeder.h).
 * trama_checkpoint.h describes the file. Each rank writes and reads its own boxes, and of equal boxes on several ranks
 * each rank a part, so every byte is written once, by a buffer of 4 MiB. Two kinds of state are resharded to rows
 * before they are written, one at a time, since their boxes are terms of sums, or runs of less than 512 bytes in the
 * file. All ranks reach the folder under one file system; nothing of HDF5 runs but on rank 0 and for the reading of
 * names.
 *
 * On the same mesh the run that goes on has the bits of a run that was never stopped. The buffers of accumulated
 * gradients are saved within a cycle only, and as sums: there the last bits may differ. */
#ifndef TRAMA_SAVE_H
#define TRAMA_SAVE_H

#include "trama_checkpoint.h"
#include "trama_executable.h"

TRAMA_API_BEGIN

/* The options of trama_save. A zeroed struct saves all states as step 0, keeps all older checkpoints, and waits. */
typedef struct trama_save_options {
    size_t size;        /* trama_base.h, "Structs that may grow" */
    int64_t step;       /* at least 0; it names the file, and orders the checkpoints of a folder */
    int keep;           /* complete checkpoints that stay in the folder, the newest ones; 0: all */
    bool asynchronous;  /* tasks copy the states, a thread writes, and the call waits for neither: trama_save_wait */
    const char *states; /* patterns between commas, such as "w*,b?"; NULL: all states */
    const char *names;  /* other names in the file, such as "w=weight,b=bias"; NULL: none */
    const char *dtype;  /* floats of this type in the file, such as "bf16"; NULL: of their own */
    int n_texts;        /* number of texts */
    const char *const *texts; /* [n_texts] the user's own keys with their texts, such as "epoch=7"; a key does not begin
                                 with "trama." */
    int64_t shard_bytes; /* safetensors: more content than that goes into several files with an index; 0: one file */
} trama_save_options;

/* Saves the state to path: a folder of checkpoints, or a file of safetensors where path ends in ".safetensors".
 *
 * In a folder the checkpoint is PATH/step-STEP.h5, where nothing is found until it is complete and on the disk: a
 * process that dies at any moment leaves the older checkpoints as they are. It makes the folder where its parent is
 * there.
 *
 * A file of safetensors takes the name path at once when it is complete, and replaces a file of that name. It has no
 * check sums, keep is 0, and the texts are its "__metadata__"; some readers want the text "format=pt" there. With
 * shard_bytes, "out/w.safetensors" becomes "out/w-00001-of-00003.safetensors" and so on with the index
 * "out/w.safetensors.index.json", which takes its name last; the files take their names one after the other.
 *
 * options may be NULL. Collective; all ranks give the same options. Waits for the runs under way.
 *
 * An asynchronous call waits for no run. The checkpoint has the state that the runs before the call leave: their order
 * with the copies is that of the calls, and tasks of later runs that overwrite a state wait for its copy only. A copy of
 * this rank's part of all states is held until it is written. The call waits for the runs before it where states are
 * resharded to rows (above). A kernel that failed before the copies fails the save.
 *
 * A second call waits for the asynchronous writing before; where that failed, the call returns its error and saves
 * nothing. Errors, equal on all ranks: E_ARGUMENT; E_DTYPE for a dtype that is no float; E_SYSTEM, naming the file,
 * where it cannot be written, which leaves no file behind; E_MEMORY; E_UNSUPPORTED without HDF5, or without cJSON for
 * safetensors. */
#define trama_save(executable, path, /* options */...) trama_save_at(TRAMA_HERE, executable, path, __VA_ARGS__)
trama_status trama_save_at(trama_where where, trama_executable *executable, const char *path,
                           const trama_save_options *options);

/* Waits until the checkpoint of an asynchronous trama_save is complete; its error. Nothing to do where none is being
 * written. trama_executable_destroy waits, too. Collective. */
#define trama_save_wait(executable) trama_save_wait_at(TRAMA_HERE, executable)
trama_status trama_save_wait_at(trama_where where, trama_executable *executable);

/* The options of trama_load. A zeroed struct demands that file and program have the same states. */
typedef struct trama_load_options {
    size_t size;  /* trama_base.h, "Structs that may grow" */
    bool partial; /* states that the file does not have keep their content, and others in the file are passed over:
                     trama_checkpoint_missing, trama_checkpoint_left_over */
    const char *states; /* as in trama_save_options: states to load */
    const char *names;  /* as in trama_save_options */
} trama_load_options;

/* Loads a checkpoint: the file (trama_checkpoint.h lists the formats), or the newest complete one of a folder, past
 * damaged ones, which it logs. A folder without checkpoints loads its arrays of NumPy. Without these, or where there is
 * no folder of that name, the call loads nothing and is no error: *checkpoint is NULL. Else *checkpoint is open, and
 * tells step, texts, missing and left over states; the caller destroys it. checkpoint may be NULL. Floats are converted
 * to the state's float type, and complex numbers likewise. Positions in cycles are restored. Collective.
 *
 * Before it changes any state, it verifies shapes, element types and all check sums. Errors, equal on all ranks, leave
 * the state as before: E_ARGUMENT where states are missing or left over, E_SHAPE, E_DTYPE, and those of
 * trama_checkpoint_open. Only a file that cannot be read any more after it was verified leaves some states loaded. */
#define trama_load(executable, path, /* options, checkpoint */...)                                                     \
    trama_load_at(TRAMA_HERE, executable, path, __VA_ARGS__)
trama_status trama_load_at(trama_where where, trama_executable *executable, const char *path,
                           const trama_load_options *options, trama_checkpoint **checkpoint);

TRAMA_API_END
#endif
