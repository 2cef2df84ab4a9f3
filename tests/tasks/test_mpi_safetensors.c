/* SPDX-License-Identifier: Apache-2.0 */
/* trama_save and trama_load with files of safetensors: the bytes of a file are those that the format says, on any mesh
 * and number of ranks; states are chosen, renamed, converted and divided over shards; errors change nothing. */
#define _GNU_SOURCE /* nftw, memmem */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "saved.h"

static const kind adam = {"2,2", "S(0),R", "R,S(1)", trama_adam, 0, 0, TRAMA_F32};
static const kind rows = {"3", "S(0)", "S(0)", trama_adam, 0, 0, TRAMA_F32};
static const kind one = {"1", "R", "R", trama_adam, 0, 0, TRAMA_F32};

static void make_folder(void)
{
    folder_new();
    if (my_rank == 0)
        demand(!mkdir(folder, 0777), "%s", folder);
    barrier();
}

/* The file with a zero byte behind it; the caller frees. */
static char *read_whole(const char *path, size_t *n)
{
    char *all = calloc(1 << 20, 1);
    FILE *f = fopen(path, "rb");
    demand(f, "%s: %s", path, strerror(errno));
    *n = fread(all, 1, (1 << 20) - 1, f);
    fclose(f);
    return all;
}

/* The header has the words, and `content` lies at the offset behind the header. */
static void expect_in_file(const char *path, const char *words, size_t offset, const void *content, size_t bytes)
{
    size_t n, header = 0;
    char *all = read_whole(path, &n);
    for (int i = 7; i >= 0; i--)
        header = header << 8 | (unsigned char)all[i];
    demand(header % 8 == 0 && 8 + header + offset + bytes <= n, "%s: a header of %zu bytes", path, header);
    demand(memmem(all + 8, header, words, strlen(words)), "%s: no %s in %.*s", path, words, (int)header, all + 8);
    demand(!memcmp(all + 8 + header + offset, content, bytes), "%s: other bytes of %s", path, words);
    free(all);
}

START_TEST(the_bytes_are_those_of_the_format)
{
    static const char *const layouts[] = {"R", "S(0)", "S(1)"};
    const float a[] = {1, -2, 3, -4, 5, -6};
    const int64_t n = -7;
    start();
    make_folder();
    for (int i = 0; i < 3; i++) {
        trama_mesh *mesh = mesh_of(i % 2 ? "4" : "2");
        trama_program *p = trama_program_create();
        trama_value *v =
            trama_shard(trama_state(p, "a\"\\\n\xc3\xa9", TRAMA_F32, TRAMA_SHAPE(3, 2), NULL), mesh, layouts[i]);
        trama_value *s = trama_state(p, "n", TRAMA_I64, TRAMA_SCALAR, NULL);
        trama_state(p, "none", TRAMA_F32, TRAMA_SHAPE(0, 2), NULL);
        trama_target_create(p, "t", trama_square(v));
        trama_executable *e = compile(p);
        must(trama_write(e, v, a, sizeof a));
        must(trama_write(e, s, &n, sizeof n));
        const char *path = in_folder("b.safetensors");
        must(trama_save(e, path, &(trama_save_options){.step = 9, .asynchronous = i % 2}));
        must(trama_save_wait(e));
        barrier();
        demand(!strcmp(names_in_folder(), "b.safetensors "), "%s", names_in_folder());
        expect_in_file(path, "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}", 0, &n, sizeof n);
        expect_in_file(path, "\"a\\\"\\\\\\u000a\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[8,32]}",
                       8, a, sizeof a);
        expect_in_file(path, "\"none\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[32,32]}", 0, "", 0);
        expect_in_file(path, "\"trama.step\":\"9\"", 0, "", 0);
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
    folder_remove();
    stop();
}
END_TEST

/* Saves on one mesh, and loads on another. */
static void carry(const kind *from, const kind *to, int64_t shard_bytes)
{
    static bits wanted, got;
    trama_checkpoint *found = NULL;
    start();
    make_folder();
    training t = training_new(from);
    for (int i = 0; i < 3; i++)
        training_step(&t, from, i);
    bits_of(t.e, &wanted);
    must(trama_save(t.e, in_folder("w.safetensors"), &(trama_save_options){.step = 3, .shard_bytes = shard_bytes}));
    training_free(&t);
    t = training_new(to);
    must(trama_load(t.e, in_folder(shard_bytes ? "w.safetensors.index.json" : "w.safetensors"), NULL, &found));
    demand(trama_checkpoint_step(found) == 3, "step");
    trama_checkpoint_destroy(&found);
    bits_of(t.e, &got);
    expect_bits(&wanted, &got, to->mesh);
    training_free(&t);
    folder_remove();
    stop();
}

START_TEST(any_mesh_loads_from_any_other)
{
    const kind *kinds[] = {&adam, &rows, &one};
    for (int i = 0; i < 9; i++)
        carry(kinds[i / 3], kinds[i % 3], i % 2 ? 0 : 100);
}
END_TEST

START_TEST(shards_keep_their_limit)
{
    start();
    make_folder();
    training t = training_new(&adam);
    must(
        trama_save(t.e, in_folder("w.safetensors"), &(trama_save_options){.states = "w,v,block*", .shard_bytes = 170}));
    demand(!strcmp(names_in_folder(), "w-00001-of-00002.safetensors w-00002-of-00002.safetensors "
                                      "w.safetensors.index.json "),
           "%s", names_in_folder());
    barrier();
    must(trama_save(t.e, in_folder("v.safetensors"), &(trama_save_options){.states = "w", .shard_bytes = 170}));
    demand(strstr(names_in_folder(), "v.safetensors w-"), "%s", names_in_folder());
    training_free(&t);
    folder_remove();
    stop();
}
END_TEST

START_TEST(states_are_chosen_renamed_and_converted)
{
    trama_checkpoint *found = NULL;
    float w[IN * HIDDEN], v[HIDDEN * OUT], got[IN * HIDDEN];
    start();
    make_folder();
    training t = training_new(&adam);
    must(trama_read(t.e, trama_state_find(t.e, "w"), w, sizeof w));
    must(trama_read(t.e, trama_state_find(t.e, "v"), v, sizeof v));
    must(trama_save(t.e, in_folder("h.safetensors"),
                    &(trama_save_options){.states = "w,v", .names = "w=0.weight", .dtype = "f16"}));
    for (int i = 0; i < IN * HIDDEN; i++)
        got[i] = 7;
    must(trama_write(t.e, trama_state_find(t.e, "w"), got, sizeof got));
    expect_here(trama_load(t.e, in_folder("h.safetensors"), NULL, NULL), TRAMA_E_ARGUMENT, "h.safetensors",
                "does not have these states", "options.partial");
    must(trama_load(t.e, in_folder("h.safetensors"), &(trama_load_options){.partial = true, .names = "w=0.weight"},
                    &found));
    demand(strstr(trama_checkpoint_missing(found), "w.m\n") && !*trama_checkpoint_left_over(found), "missing");
    trama_checkpoint_destroy(&found);
    must(trama_read(t.e, trama_state_find(t.e, "w"), got, sizeof got));
    for (int i = 0; i < IN * HIDDEN; i++) /* 10 bits of mantissa, to nearest */
        demand(fabsf(got[i] - w[i]) <= fabsf(w[i]) / 2048, "w[%d]: %g is %g", i, (double)w[i], (double)got[i]);
    training_free(&t);
    folder_remove();
    stop();
}
END_TEST

/* A folder without checkpoints, which has arrays of NumPy. */
START_TEST(arrays_of_a_folder_are_loaded)
{
    float v[HIDDEN * OUT], got[HIDDEN * OUT];
    trama_checkpoint *found = NULL;
    start();
    make_folder();
    for (int i = 0; i < HIDDEN * OUT; i++)
        v[i] = (float)i / 8;
    if (my_rank == 0)
        must(trama_write_npy(in_folder("first.npy"), TRAMA_F32, TRAMA_SHAPE(HIDDEN, OUT), v));
    barrier();
    training t = training_new(&adam);
    must(trama_load(t.e, folder, &(trama_load_options){.states = "v", .names = "v=first"}, &found));
    demand(found && trama_checkpoint_step(found) == -1, "a step");
    trama_checkpoint_destroy(&found);
    must(trama_read(t.e, trama_state_find(t.e, "v"), got, sizeof got));
    demand(!memcmp(v, got, sizeof v), "other numbers");
    training_free(&t);
    folder_remove();
    stop();
}
END_TEST

START_TEST(wrong_uses_are_refused)
{
    start();
    make_folder();
    training t = training_new(&adam);
    char path[300];
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    expect_here(trama_save(t.e, path, &(trama_save_options){.keep = 2}), TRAMA_E_ARGUMENT, "keep", "w.safetensors");
    expect_here(trama_save(t.e, folder, &(trama_save_options){.shard_bytes = 2}), TRAMA_E_ARGUMENT, "shard_bytes",
                ".safetensors");
    expect_here(trama_save(t.e, path, &(trama_save_options){.shard_bytes = -2}), TRAMA_E_ARGUMENT, "shard_bytes");
    expect_here(trama_save(t.e, in_folder("w.safetensors.index.json"), NULL), TRAMA_E_ARGUMENT, "index");
    expect_here(trama_save(t.e, path, &(trama_save_options){.names = "w=__metadata__"}), TRAMA_E_ARGUMENT,
                "__metadata__", "options.names");
    expect_here(trama_save(t.e, path, &(trama_save_options){.names = "w=\xff"}), TRAMA_E_ARGUMENT, "UTF-8");
    expect_here(trama_save(t.e, "/nowhere/at/all/w.safetensors", NULL), TRAMA_E_SYSTEM, "/nowhere/at/all", "folder");
    expect_here(trama_save(t.e, in_folder("w.npz"), NULL), TRAMA_E_ARGUMENT, "w.npz", "trama_checkpoint_write");
    expect_here(trama_load(t.e, path, NULL, NULL), TRAMA_E_SYSTEM, "w.safetensors", "no such file");
    expect_here(trama_load(t.e, in_folder("w.npz"), NULL, NULL), TRAMA_E_SYSTEM, "w.npz", "no such file");
    barrier();
    demand(!*names_in_folder(), "left: %s", names_in_folder());
    barrier();
    training_free(&t);
    trama_program *p = trama_program_create();
    trama_target_create(p, "t", trama_square(trama_state(p, "z", TRAMA_C128, TRAMA_SCALAR, NULL)));
    trama_executable *e = compile(p);
    expect_here(trama_save(e, path, NULL), TRAMA_E_DTYPE, "z", "c128", "options.states");
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    folder_remove();
    stop();
}
END_TEST

/* A limit of file sizes stands for a full disk: the old file stays, and no part of the new one. */
START_TEST(a_full_disk_leaves_the_old_file)
{
    static bits first, got;
    struct rlimit limit, full;
    start();
    make_folder();
    training t = training_new(&adam);
    bits_of(t.e, &first);
    const char *path = in_folder("w.safetensors");
    must(trama_save(t.e, path, NULL));
    training_step(&t, &adam, 0);
    barrier();
    getrlimit(RLIMIT_FSIZE, &limit);
    full = (struct rlimit){300, limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &full);
    trama_status status = trama_save(t.e, path, NULL), later = TRAMA_OK;
    demand(status == TRAMA_E_SYSTEM && strstr(trama_error(), "w.safetensors"), "%s", trama_error());
    status = trama_save(t.e, path, &(trama_save_options){.asynchronous = true, .shard_bytes = 200});
    later = trama_save_wait(t.e);
    demand(status == TRAMA_E_SYSTEM || later == TRAMA_E_SYSTEM, "the limit is passed over");
    setrlimit(RLIMIT_FSIZE, &limit);
    barrier();
    demand(!strcmp(names_in_folder(), "w.safetensors "), "left: %s", names_in_folder());
    must(trama_load(t.e, path, NULL, NULL));
    bits_of(t.e, &got);
    expect_bits(&first, &got, "full");
    training_free(&t);
    folder_remove();
    stop();
}
END_TEST

/* A file that ends early, or has another shape, changes no state. */
START_TEST(damaged_files_change_nothing)
{
    static bits now, after;
    char said[600];
    start();
    make_folder();
    training t = training_new(&adam);
    must(trama_save(t.e, in_folder("w.safetensors"), NULL));
    training_step(&t, &adam, 0);
    bits_of(t.e, &now);
    if (my_rank == 0) {
        struct stat s;
        demand(!stat(in_folder("w.safetensors"), &s) && !truncate(in_folder("w.safetensors"), s.st_size - 1), "cut");
    }
    barrier();
    expect_here(trama_load(t.e, in_folder("w.safetensors"), NULL, NULL), TRAMA_E_SYSTEM, "w.safetensors", "tensor ",
                "restore it from a copy");
    must(trama_save(t.e, in_folder("v.safetensors"), &(trama_save_options){.states = "v", .names = "v=w"}));
    expect_here(trama_load(t.e, in_folder("v.safetensors"), &(trama_load_options){.partial = true}, NULL),
                TRAMA_E_SHAPE, "v.safetensors", "w has the shape");
    snprintf(said, sizeof said, "%s", trama_error());
    bits_of(t.e, &after);
    expect_bits(&now, &after, said);
    training_free(&t);
    folder_remove();
    stop();
}
END_TEST

TESTS(the_bytes_are_those_of_the_format, any_mesh_loads_from_any_other, shards_keep_their_limit,
      states_are_chosen_renamed_and_converted, arrays_of_a_folder_are_loaded, wrong_uses_are_refused,
      a_full_disk_leaves_the_old_file, damaged_files_change_nothing)
