/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged checkpoints, and folders that cannot be written: an older checkpoint loads, errors name the file, and the
 * state is as before the call. */
#define _GNU_SOURCE /* nftw */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "saved.h"

static const kind adam = {"2,2", "S(0),R", "R,S(1)", trama_adam, 0, 0, TRAMA_F32};
static training t;
static bits now;

static void hush(void *data, trama_log_level level, const char *words)
{
}

/* Checkpoints of steps 1 and 2, and a state that is neither. */
static void set_up_two(void)
{
    start_with(&(trama_config){.log = hush});
    folder_new();
    t = training_new(&adam);
    for (int i = 0; i < 3; i++) {
        training_step(&t, &adam, i);
        if (i < 2)
            must(trama_save(t.e, folder, &(trama_save_options){.step = i + 1}));
    }
    bits_of(t.e, &now);
}

static void tear_down(void)
{
    training_free(&t);
    folder_remove();
    stop();
}

static void expect_unchanged(const char *when)
{
    static bits after;
    bits_of(t.e, &after);
    expect_bits(&now, &after, when);
}

static const char *newest(void)
{
    return in_folder("step-000000000002.h5");
}

/* The newest file does not load, and nothing changes; the folder loads as of step 1. */
static void expect_older(const char *when)
{
    trama_checkpoint *found = NULL;
    trama_status status = trama_load(t.e, newest(), NULL, &found);
    demand(status == TRAMA_E_SYSTEM || status == TRAMA_E_ARGUMENT, "%s: the file gives \"%s\" (%s)", when,
           trama_status_text(status), trama_error());
    demand(strstr(trama_error(), "step-000000000002.h5") && strlen(trama_error()) > 60, "%s: %s", when, trama_error());
    expect_unchanged(when);
    must(trama_load(t.e, folder, NULL, &found));
    demand(found && trama_checkpoint_step(found) == 1, "%s: not the older checkpoint", when);
    trama_checkpoint_destroy(&found);
    for (int i = 0; i < now.n; i++)
        must(trama_write(t.e, trama_state_number(t.e, i), now.data[i], now.bytes[i]));
}

static int64_t size_of(const char *path)
{
    struct stat s;
    demand(!stat(path, &s), "%s: %s", path, strerror(errno));
    return s.st_size;
}

static void flip(const char *path, int64_t at, int bit)
{
    unsigned char byte;
    if (my_rank == 0) {
        int f = open(path, O_RDWR);
        demand(f >= 0 && pread(f, &byte, 1, at) == 1, "%s", path);
        byte ^= (unsigned char)(1 << bit);
        demand(pwrite(f, &byte, 1, at) == 1, "%s", path);
        close(f);
    }
    barrier();
}

START_TEST(a_flipped_bit_anywhere_is_found)
{
    set_up_two();
    const int64_t size = size_of(newest());
    char when[60];
    for (int i = 0; i < 60; i++) {
        const int64_t at = i < 20 ? i * 12 : size * (2 * i + 1) / 120;
        snprintf(when, sizeof when, "a flip in byte %d of %d", (int)at, (int)size);
        flip(newest(), at, i % 8);
        expect_older(when);
        flip(newest(), at, i % 8);
    }
    must(trama_load(t.e, newest(), NULL, NULL));
    tear_down();
}
END_TEST

START_TEST(the_error_names_file_and_dataset)
{
    trama_checkpoint *c = NULL;
    unsigned char w[4 * IN * HIDDEN], *all;
    set_up_two();
    must(trama_checkpoint_open(newest(), &c));
    must(trama_checkpoint_read(c, trama_checkpoint_find(c, "w"), w, sizeof w));
    trama_checkpoint_destroy(&c);
    const size_t size = (size_t)size_of(newest());
    all = malloc(size);
    FILE *f = fopen(newest(), "rb");
    demand(f && fread(all, 1, size, f) == size, "the file");
    fclose(f);
    const unsigned char *at = memmem(all, size, w, sizeof w);
    demand(at, "the dataset does not lie in the file as it lies in memory");
    barrier();
    flip(newest(), at - all + 17, 3);
    expect_here(trama_load(t.e, newest(), NULL, NULL), TRAMA_E_SYSTEM, "trama_load", "step-000000000002.h5",
                "dataset w", "check sum", "older checkpoint");
    must(trama_checkpoint_open(newest(), &c));
    expect(trama_checkpoint_verify(c, trama_checkpoint_find(c, "w")), TRAMA_E_SYSTEM, "dataset w", newest());
    must(trama_checkpoint_verify(c, trama_checkpoint_find(c, "v")));
    trama_checkpoint_destroy(&c);
    free(all);
    tear_down();
}
END_TEST

START_TEST(files_cut_short_or_longer_are_found)
{
    set_up_two();
    const int64_t size = size_of(newest()), cuts[] = {size + 1, size - 1, size - 200, size / 2, 4096, 100, 0};
    barrier();
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        demand(my_rank || !truncate(newest(), cuts[i]), "truncate");
        barrier();
        expect_older("a file of another size");
    }
    tear_down();
}
END_TEST

START_TEST(other_programs_are_refused)
{
    static const kind other = {"2", "S(0)", "R", trama_sgd, 0.9, 0, TRAMA_F32};
    set_up_two();
    training o = training_new(&other);
    expect_here(trama_load(o.e, folder, NULL, NULL), TRAMA_E_ARGUMENT, "step-000000000002.h5", "w.b");
    expect_here(trama_load(o.e, folder, &(trama_load_options){.states = "w", .names = "w=v"}, NULL), TRAMA_E_SHAPE,
                "dataset v", "[7,3] instead of [5,7]", "state w");
    expect_here(trama_load(o.e, folder, &(trama_load_options){.states = "w", .names = "w=random.run"}, NULL),
                TRAMA_E_SHAPE, "random.run");
    training_free(&o);
    tear_down();
}
END_TEST

/* ---- Folders ---- */

static void expect_refused(const char *path, const char *said)
{
    char before[2000];
    snprintf(before, sizeof before, "%s", names_in_folder());
    barrier();
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        trama_status status = trama_save(t.e, path, &(trama_save_options){.step = 9, .asynchronous = asynchronous});
        if (!status && asynchronous)
            status = trama_save_wait(t.e);
        demand(status == TRAMA_E_SYSTEM && strstr(trama_error(), said) && strstr(trama_error(), path), "%s: %s: %s",
               said, trama_status_text(status), trama_error());
        barrier();
        demand(!strcmp(before, names_in_folder()), "%s leaves %s", said, names_in_folder());
        barrier();
    }
    expect_unchanged(said);
}

START_TEST(folders_that_cannot_be_written_are_told)
{
    char path[300];
    set_up_two();
    snprintf(path, sizeof path, "%s/none/none", folder);
    expect_refused(path, "cannot be made");
    expect_refused(newest(), "cannot be read"); /* a file */
    if (!geteuid()) {                           /* root may do all, so it becomes another */
        demand(my_rank || !chmod(folder, 0555), "chmod");
        barrier();
        demand(!seteuid(65534), "seteuid");
        expect_refused(folder, "Permission denied");
        demand(!seteuid(0), "seteuid");
    } else {
        demand(my_rank || !chmod(folder, 0555), "chmod");
        barrier();
        expect_refused(folder, "Permission denied");
    }
    barrier();
    demand(my_rank || !chmod(folder, 0755), "chmod");
    barrier();
    must(trama_load(t.e, folder, NULL, NULL));
    tear_down();
}
END_TEST

START_TEST(a_full_disk_is_told)
{
    struct rlimit limit, small;
    set_up_two();
    signal(SIGXFSZ, SIG_IGN);
    demand(!getrlimit(RLIMIT_FSIZE, &limit), "getrlimit");
    small = limit;
    for (int i = 0; i < 3; i++) { /* the frame, its end, the contents do not fit */
        small.rlim_cur = (rlim_t[]){2000, 5000, 9000}[i];
        demand(!setrlimit(RLIMIT_FSIZE, &small), "setrlimit");
        expect_refused(folder, "has room");
    }
    demand(!setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
    must(trama_load(t.e, folder, NULL, NULL));
    tear_down();
}
END_TEST

START_TEST(a_full_file_system_is_told)
{
    set_up_two();
    char full[300];
    snprintf(full, sizeof full, "%s/full", folder);
    int mounted = 0, all[64];
    if (my_rank == 0 && !mkdir(full, 0755))
        mounted = !mount("tmpfs", full, "tmpfs", 0, "size=8k");
    must(context_gather(ctx, "a test", &mounted, sizeof mounted, all));
    if (all[0]) {
        expect_refused(full, "No space left");
        barrier();
        demand(my_rank || !umount(full), "umount");
    } else if (my_rank == 0) {
        printf("skipped: a tmpfs cannot be mounted here\n");
    }
    barrier();
    tear_down();
}
END_TEST

/* A checkpoint that a job did not finish is removed by the next save, and never found. */
START_TEST(unfinished_files_are_not_found)
{
    trama_checkpoint *found = NULL;
    set_up_two();
    demand(my_rank || !rename(newest(), in_folder("step-000000000003.h5.part")), "rename");
    barrier();
    must(trama_load(t.e, folder, NULL, &found));
    demand(found && trama_checkpoint_step(found) == 1, "found");
    trama_checkpoint_destroy(&found);
    must(trama_save(t.e, folder, &(trama_save_options){.step = 4}));
    demand(!strcmp(names_in_folder(), "step-000000000001.h5 step-000000000004.h5 "), "%s", names_in_folder());
    tear_down();
}
END_TEST

START_TEST(wrong_options_are_refused)
{
    set_up_two();
    expect_here(trama_save(t.e, "", NULL), TRAMA_E_ARGUMENT, "trama_save", "folder");
    expect_here(trama_save(t.e, folder, &(trama_save_options){.step = -1}), TRAMA_E_ARGUMENT, "step");
    expect_here(trama_save(t.e, folder, &(trama_save_options){.keep = -1}), TRAMA_E_ARGUMENT, "keep");
    expect_here(trama_save(t.e, folder, &(trama_save_options){.dtype = "i32"}), TRAMA_E_DTYPE, "i32", "bf16");
    expect_here(trama_save(t.e, folder, &(trama_save_options){.n_texts = 1}), TRAMA_E_ARGUMENT, "texts");
    const char *const wrong[] = {"none", "=b", "trama.step=4"};
    for (int i = 0; i < 3; i++)
        expect_here(trama_save(t.e, folder, &(trama_save_options){.n_texts = 1, .texts = &wrong[i]}), TRAMA_E_ARGUMENT,
                    "text 0", "KEY=TEXT");
    expect_here(trama_save(t.e, folder, &(trama_save_options){.names = "w=v"}), TRAMA_E_ARGUMENT, "two states", "v");
    expect_here(trama_load(t.e, in_folder("none.h5"), NULL, NULL), TRAMA_E_SYSTEM, "none.h5", "no such file");
    tear_down();
}
END_TEST

TESTS(a_flipped_bit_anywhere_is_found, the_error_names_file_and_dataset, files_cut_short_or_longer_are_found,
      other_programs_are_refused, folders_that_cannot_be_written_are_told, a_full_disk_is_told,
      a_full_file_system_is_told, unfinished_files_are_not_found, wrong_options_are_refused)
