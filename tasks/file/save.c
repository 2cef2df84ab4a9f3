/* SPDX-License-Identifier: Apache-2.0 */
/* trama_save: checks the options, lists states and texts, and leads the ranks through the writing of one checkpoint. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "feeder.h"
#include "hash.h"
#include "saving.h"
#include "shares.h"
#include "sized.h"
#include "trama_state.h"

static const char call[] = "trama_save";

/* ---- Options ---- */

static bool is_text(const char *words)
{
    const char *sign = words ? strchr(words, '=') : NULL;
    return sign && sign != words && strncmp(words, "trama.", 6) && strlen(words) < 60000;
}

/* The fields of files, and those of folders. */
static trama_status check_format(trama_where where, const char *path, const trama_save_options *o)
{
    const bool file = path_is_safetensors(path);
    if (file ? o->keep : o->shard_bytes != 0)
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          file ? "%s: keep counts the checkpoints of a folder, and %s is a file; give keep 0"
                               : "%s: shard_bytes is for files of safetensors; let the path '%s' end in .safetensors",
                          call, path);
    if (path_has_ending(path, ".npy") || path_has_ending(path, ".npz"))
        return trama_fail(where, TRAMA_E_ARGUMENT,
                          "%s: %s is the name of an array, not of a folder; trama_checkpoint_write makes archives .npz",
                          call, path);
    if (file && !strcmp(path + strlen(path) - 5, ".json"))
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: %s is the name of an index; give one that ends in .safetensors",
                          call, path);
    return TRAMA_OK;
}

static trama_status check_options(trama_where where, const trama_save_options *o, trama_dtype *dtype)
{
    if (o->step < 0 || o->keep < 0 || o->n_texts < 0 || o->shard_bytes < 0)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: step, keep, n_texts and shard_bytes are 0 or more", call);
    if (o->n_texts && !o->texts)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the texts are NULL", call);
    for (int i = 0; i < o->n_texts; i++)
        if (!is_text(o->texts[i]))
            return trama_fail(
                where, TRAMA_E_ARGUMENT,
                "%s: text %d is not KEY=TEXT of less than 60,000 bytes with a key that does not begin with "
                "'trama.'",
                call, i);
    return file_dtype_parse(where, call, o->dtype, dtype);
}

/* ---- The content of the file ---- */

/* Whether a target is within a cycle, so that the buffers of accumulated gradients are in use. */
static bool is_within_cycle(const trama_executable *e)
{
    for (int i = 0; i < e->targets.n; i++)
        if (e->targets.at[i].cycle.at)
            return true;
    return false;
}

static trama_status list_states(saving *s, const trama_save_options *o, trama_dtype dtype)
{
    const bool within = is_within_cycle(s->e);
    for (int i = 0; i < trama_state_count(s->e); i++) {
        const trama_value *v = trama_state_number(s->e, i);
        const bool chosen = name_is_chosen(o->states, v->name) && (within || !v->state->terms);
        *ARRAY_PUSH(&s->tensor_of) = chosen ? s->file->tensors.n : -1;
        if (!chosen)
            continue;
        if (!checkpoint_add_state(s->file, o->names, dtype, v->name, v->dtype, v->shape))
            return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                              "two states have the name %s in the file; give one of them another in options.names",
                              v->name);
    }
    return TRAMA_OK;
}

/* The hash of names, shapes and element types. */
static uint64_t hash_states(const trama_executable *e)
{
    uint64_t hash = HASH_START;
    for (int i = 0; i < trama_state_count(e); i++) {
        const trama_value *v = trama_state_number(e, i);
        if (v->state->terms)
            continue;
        hash = hash_word(hash_text(hash, v->name), (uint64_t)v->dtype);
        for (int d = 0; d < v->shape.ndim; d++)
            hash = hash_word(hash, (uint64_t)v->shape.dim[d]);
    }
    return hash;
}

__attribute__((format(printf, 3, 4))) static void set_text(trama_checkpoint *c, const char *key, const char *format,
                                                           ...)
{
    char words[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    checkpoint_set(c, key, words);
}

static void list_texts(saving *s, const trama_save_options *o)
{
    set_text(s->file, "trama.version", "%s", trama_version());
    set_text(s->file, "trama.step", "%" PRId64, o->step);
    set_text(s->file, "trama.program", "%016" PRIx64, hash_states(s->e));
    for (int i = 0; i < s->e->targets.n; i++) {
        const target_state *t = &s->e->targets.at[i];
        text key = {0};
        if (!t->cycle.k)
            continue;
        text_add(&key, "trama.cycle.%s", t->form[TARGET_RUN].target->name);
        set_text(s->file, key.at, "%" PRId64 " %" PRId64 " %a %a", t->cycle.k, t->cycle.at, t->cycle.first,
                 t->cycle.sum);
        free(key.at);
    }
    feeders_list(s->e, s->file);
    for (int i = 0; i < o->n_texts; i++) {
        char *key = trama_text_copy(o->texts[i]), *sign = strchr(key, '=');
        *sign = 0;
        checkpoint_set(s->file, key, sign + 1);
        free(key);
    }
}

/* ---- The file ---- */

/* Every rank opens the file that rank 0 has made, for the places of the contents. */
static trama_status open_file(saving *s)
{
    trama_checkpoint *listed = s->file, *c = checkpoint_new(listed->path);
    trama_status status = c->format->open_unfinished(c);
    if (!status && c->tensors.n != listed->tensors.n)
        status = checkpoint_damaged(c->path, NULL, "another rank has listed other states");
    for (int i = 0; i < s->tensor_of.n && !status; i++)
        if (s->tensor_of.at[i] >= 0)
            s->tensor_of.at[i] = trama_checkpoint_find(c, listed->tensors.at[s->tensor_of.at[i]].name);
    s->sums = trama_alloc((size_t)(c->tensors.n + 1) * sizeof *s->sums);
    s->file = c;
    trama_checkpoint_destroy(&listed);
    return status;
}

/* The file is open on every rank before its end moves. */
static trama_status begin_file(saving *s)
{
    trama_status status = TRAMA_OK;
    if (s->rank == 0)
        status = s->file->format == &hdf5_format ? folder_begin(s->folder) : folder_make(s->folder);
    if (s->rank == 0 && !status)
        status = s->file->format->write_frame(s->file);
    status = context_agree(s->e->context, call, status);
    if (!status)
        status = context_agree(s->e->context, call, open_file(s));
    if (!status && s->rank == 0)
        status = shares_begin(s->file, s->ranks);
    return context_agree(s->e->context, call, status);
}

static void drop_file(const saving *s)
{
    if (s->rank == 0)
        checkpoint_remove(s->file);
}

static trama_status write_file(saving *s)
{
    trama_status status = begin_file(s);
    if (status) {
        drop_file(s);
        return status;
    }
    status = saving_boxes(s);
    if (!s->holds)
        return context_agree(s->e->context, call, saving_finish(s, status));
    status = context_agree(s->e->context, call, status);
    if (status)
        drop_file(s);
    else
        saving_start_thread(s);
    return status;
}

/* ---- The calls ---- */

trama_status saving_error(trama_where where, const char *name, trama_status status)
{
    char *message = status ? trama_text_copy(trama_error()) : NULL;
    if (status)
        trama_fail(where, status, "%s: %s", name, message);
    free(message);
    return status;
}

static trama_status wait_for_thread(trama_executable *e)
{
    if (!e->open.saving)
        return TRAMA_OK;
    trama_status status = context_agree(e->context, call, saving_join(e->open.saving));
    saving_free(&e->open.saving);
    return status;
}

void saving_end(trama_executable *e)
{
    if (e->open.saving && saving_join(e->open.saving))
        context_log(e->context, TRAMA_LOG_ERROR, "rank %d: a checkpoint was not saved: %s", context_rank(e->context),
                    trama_error());
    saving_free(&e->open.saving);
}

static saving *saving_new(trama_executable *e, const char *path, const trama_save_options *o)
{
    const bool file = path_is_safetensors(path);
    saving *s = trama_alloc(sizeof *s);
    *s = (saving){.e = e,
                  .folder = file ? folder_of(path) : trama_text_copy(path),
                  .path = file ? trama_text_copy(path) : folder_path(path, o->step, false),
                  .rank = context_rank(e->context),
                  .ranks = context_ranks(e->context),
                  .keep = o->keep,
                  .holds = o->asynchronous,
                  .copies = fence_new(e->context)};
    sem_init(&s->one_copied, 0, 0);
    char *unfinished = file ? unfinished_path(path) : folder_path(path, o->step, true);
    s->file = checkpoint_new(unfinished);
    free(unfinished);
    return s;
}

trama_status trama_save_at(trama_where where, trama_executable *e, const char *path, const trama_save_options *given)
{
    trama_save_options o = {0};
    trama_dtype dtype;
    if (!e || !path || !*path)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the %s is NULL or empty", call,
                          e ? "name of the folder or file" : "executable");
    trama_status status = given ? sized_read(where, call, SIZED(trama_save_options, shard_bytes), &o, given) : TRAMA_OK;
    if (!status)
        status = check_options(where, &o, &dtype);
    if (!status)
        status = check_format(where, path, &o);
    if (!status)
        status = executable_begin_call(e, where, call, call);
    if (!status)
        status = saving_error(where, call, wait_for_thread(e));
    if (!status && !o.asynchronous)
        status = context_agree(e->context, call, trama_wait(e));
    if (status)
        return status;
    saving *s = saving_new(e, path, &o);
    status = list_states(s, &o, dtype);
    if (!status) {
        list_texts(s, &o);
        if (s->file->format == &safetensors_format)
            safetensors_divide(s->file, o.shard_bytes, &s->path);
        status = write_file(s);
    }
    if (!status && s->holds)
        e->open.saving = s;
    else
        saving_free(&s);
    return saving_error(where, call, status);
}

trama_status trama_save_wait_at(trama_where where, trama_executable *e)
{
    static const char wait[] = "trama_save_wait";
    if (!e)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the executable is NULL", wait);
    trama_status status = executable_begin_call(e, where, wait, wait);
    return status ? status : saving_error(where, wait, wait_for_thread(e));
}
