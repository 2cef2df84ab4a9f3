/* SPDX-License-Identifier: Apache-2.0 */
/* trama_save and trama_load: a training that is saved, ended and gone on with has the bits of one that was never
 * stopped; on another mesh its losses; parts, other names and other types of states. */
#define _GNU_SOURCE /* nftw */
#include <hdf5.h>

#include "saved.h"

/* Stops after so many steps, and goes on in another executable of another context, on the mesh of `later`. Losses may
 * differ by `most`, relatively; 0: no bit does. */
static void go_on_after(const kind *k, const kind *later, int stop_after, bool asynchronous, double most)
{
    static bits wanted, ends;
    double losses[STEPS];
    trama_checkpoint *found = NULL;
    start_with(&(trama_config){.map_by_order = true});
    folder_new();
    training t = training_new(k);
    for (int i = 0; i < STEPS; i++) {
        if (i == stop_after)
            must(trama_save(t.e, folder,
                            &(trama_save_options){.step = i,
                                                  .asynchronous = asynchronous,
                                                  .n_texts = 1,
                                                  .texts = (const char *const[]){"note=a=b"}}));
        losses[i] = training_step(&t, k, i);
    }
    bits_of(t.e, &wanted);
    training_free(&t); /* waits for the writing */
    stop();
    start_with(&(trama_config){.map_by_order = true});
    t = training_new(later);
    must(trama_load(t.e, folder, NULL, &found));
    demand(found && trama_checkpoint_step(found) == stop_after, "no checkpoint of step %d", stop_after);
    demand(!strcmp(trama_checkpoint_get(found, "note"), "a=b"), "the note is lost");
    demand(!*trama_checkpoint_missing(found) && !*trama_checkpoint_left_over(found), "missing or left over");
    trama_checkpoint_destroy(&found);
    for (int i = stop_after; i < STEPS; i++) {
        double loss = training_step(&t, later, i);
        demand(most ? fabs(loss - losses[i]) <= most * fabs(losses[i]) : loss == losses[i],
               "%s to %s after %d: the loss of step %d is %.17g instead of %.17g", k->mesh, later->mesh, stop_after, i,
               loss, losses[i]);
    }
    bits_of(t.e, &ends);
    if (!most)
        expect_bits(&wanted, &ends, k->mesh);
    training_free(&t);
    folder_remove();
    stop();
}

static const kind momentum = {"2", "S(0)", "R", trama_sgd, 0.9, 0, TRAMA_F64};
static const kind adam = {"2,2", "S(0),R", "R,S(1)", trama_adam, 0, 0, TRAMA_F32};
static const kind lamb = {"3", "S(0)", "S(0)", trama_lamb, 0, 0, TRAMA_F64};
static const kind merging = {"2,2", "S(0),R", "R,S(1)", trama_adamw, 0, 3, TRAMA_F32};
static const kind masked = {"2,2", "S(0),R", "R,S(1) mask{1,1,0,0}", trama_adam, 0, 0, TRAMA_F32};
static const kind merging_one = {"1", "R", "R", trama_sgd, 0.9, 4, TRAMA_F64};

START_TEST(a_training_goes_on_with_the_bits_of_one_that_never_stopped)
{
    const kind *kinds[] = {&momentum, &adam, &lamb, &masked};
    for (int i = 0; i < 4; i++) {
        go_on_after(kinds[i], kinds[i], 4 + i, false, 0);
        go_on_after(kinds[i], kinds[i], 7, true, 0);
    }
}
END_TEST

START_TEST(accumulated_gradients_go_on)
{
    go_on_after(&merging, &merging, 6, false, 0);
    go_on_after(&merging, &merging, 6, true, 0);
    go_on_after(&merging_one, &merging_one, 5, false, 0); /* within a cycle; one process holds one term */
    go_on_after(&merging, &merging, 7, false, 1e-5);      /* within a cycle, as sums */
    go_on_after(&merging, &merging, 5, true, 1e-5);
}
END_TEST

START_TEST(any_mesh_goes_on_from_any_other)
{
    static const kind meshes[] = {{"dp=4", "S(0)", "R", trama_sgd, 0, 0, TRAMA_F32},
                                  {"mp=2", "R", "S(1)", trama_sgd, 0, 0, TRAMA_F32},
                                  {"1", "R", "R", trama_sgd, 0, 0, TRAMA_F32},
                                  {"dp=2,mp=2", "S(0),R", "R,S(0)", trama_sgd, 0, 0, TRAMA_F32}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (i != j)
                go_on_after(&meshes[i], &meshes[j], 5, (i + j) % 2, 1e-5);
}
END_TEST

/* ---- The file for others ---- */

START_TEST(hdf5_reads_the_file)
{
    start();
    folder_new();
    training t = training_new(&adam);
    training_step(&t, &adam, 0);
    must(trama_save(t.e, folder, &(trama_save_options){.step = 7, .dtype = "f64"}));
    float w[IN * HIDDEN], s[HIDDEN];
    double read[IN * HIDDEN];
    must(trama_read(t.e, trama_state_find(t.e, "w"), w, sizeof w));
    must(trama_read(t.e, trama_state_find(t.e, "block/scale"), s, sizeof s));
    hid_t file = H5Fopen(in_folder("step-000000000007.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t data = H5Dopen2(file, "w", H5P_DEFAULT), space = H5Dget_space(data);
    hsize_t extents[2];
    demand(H5Sget_simple_extent_dims(space, extents, NULL) == 2 && extents[0] == IN && extents[1] == HIDDEN, "extents");
    demand(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) >= 0, "w");
    for (int i = 0; i < IN * HIDDEN; i++)
        demand(read[i] == (double)w[i], "w[%d]", i);
    H5Dclose(data);
    data = H5Dopen2(file, "block%2Fscale", H5P_DEFAULT);
    demand(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) >= 0, "block/scale");
    for (int i = 0; i < HIDDEN; i++)
        demand(read[i] == (double)s[i], "scale[%d]", i);
    H5Dclose(data);
    char step[20] = "";
    hid_t type = H5Tcopy(H5T_C_S1), attribute = H5Aopen(file, "trama.step", H5P_DEFAULT);
    H5Tset_size(type, sizeof step);
    H5Tset_cset(type, H5T_CSET_UTF8);
    demand(H5Aread(attribute, type, step) >= 0 && !strcmp(step, "7"), "step '%s'", step);
    H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
    H5Fclose(file);
    training_free(&t);
    folder_remove();
    stop();
}
END_TEST

/* Each element type of a state comes back with its bits. */
START_TEST(every_type_comes_back)
{
    static bits wanted, got;
    start();
    folder_new();
    for (int round = 0; round < 2; round++) {
        trama_mesh *mesh = mesh_of(round ? "2" : "3");
        trama_program *p = trama_program_create();
        for (int d = 0; d < TRAMA_N_DTYPES; d++)
            trama_shard(trama_state(p, trama_dtype_name((trama_dtype)d), (trama_dtype)d, TRAMA_SHAPE(3, 4), NULL), mesh,
                        d % 2 == round ? "S(1)" : "S(0)");
        trama_state(p, "none", TRAMA_F32, TRAMA_SHAPE(0, 4), NULL);
        trama_state(p, "%2F", TRAMA_F32, TRAMA_SHAPE(), NULL);
        trama_state(p, "a/b%c..", TRAMA_F32, TRAMA_SHAPE(2), NULL);
        trama_target_create(p, "t", trama_square(trama_state(p, "..", TRAMA_F32, TRAMA_SHAPE(2), NULL)));
        trama_executable *e = compile(p);
        if (!round) {
            for (int i = 0; i < trama_state_count(e); i++) {
                const trama_value *s = trama_state_number(e, i);
                _Alignas(16) unsigned char data[12 * 16];
                for (int j = 0; j < 12 * 16; j++)
                    data[j] = (unsigned char)((j * 5 + i) % (trama_value_dtype(s) == TRAMA_BOOL ? 2 : 60));
                must(trama_write(e, s, data,
                                 (size_t)trama_shape_count(trama_value_shape(s)) *
                                     trama_dtype_size(trama_value_dtype(s))));
            }
            bits_of(e, &wanted);
            must(trama_save(e, folder, NULL));
        }
        must(trama_load(e, folder, NULL, NULL));
        bits_of(e, &got);
        expect_bits(&wanted, &got, "types");
        must(trama_executable_destroy(&e));
        trama_program_destroy(&p);
        trama_mesh_destroy(&mesh);
    }
    folder_remove();
    stop();
}
END_TEST

/* ---- Parts of the state ---- */

START_TEST(states_are_chosen_renamed_and_converted)
{
    static bits first, got;
    trama_checkpoint *found = NULL;
    start();
    folder_new();
    training t = training_new(&adam);
    training_step(&t, &adam, 0);
    bits_of(t.e, &first);
    must(trama_save(t.e, folder,
                    &(trama_save_options){.states = "w,w.?,block*", .names = "w=first,w.m=m", .dtype = "bf16"}));
    training_step(&t, &adam, 1);
    expect_here(trama_load(t.e, folder, &(trama_load_options){.partial = false}, &found), TRAMA_E_ARGUMENT,
                "trama_load", "step-000000000000.h5", "does not have these states", "options.partial");
    demand(!found, "an error gives a checkpoint");
    must(trama_load(t.e, folder, &(trama_load_options){.partial = true}, &found));
    demand(strstr(trama_checkpoint_missing(found), "w.m\n") && strstr(trama_checkpoint_missing(found), "v\n") &&
               !strstr(trama_checkpoint_missing(found), "w.v"),
           "missing: %s", trama_checkpoint_missing(found));
    demand(!strcmp(trama_checkpoint_left_over(found), "first\nm\n"), "left: %s", trama_checkpoint_left_over(found));
    int at = trama_checkpoint_find(found, "first");
    demand(at >= 0 && trama_checkpoint_dtype(found, at) == TRAMA_BF16 &&
               trama_checkpoint_shape(found, at).dim[1] == HIDDEN,
           "first in the file");
    trama_bf16 halves[IN * HIDDEN];
    must(trama_checkpoint_read(found, at, halves, sizeof halves));
    trama_checkpoint_destroy(&found);
    must(trama_load(t.e, folder, &(trama_load_options){.states = "w,w.m,w.v", .names = "w=first,w.m=m"}, NULL));
    bits_of(t.e, &got);
    for (int i = 0; i < got.n; i++)
        for (int j = 0; !strcmp(got.name[i], "w") && j < IN * HIDDEN; j++) {
            const double was = number_at(first.data[i], TRAMA_F32, j), is = number_at(got.data[i], TRAMA_F32, j);
            demand(fabs(was - is) <= fabs(was) / 256 && is == number_at(halves, TRAMA_BF16, j), "w[%d]: %g is %g", j,
                   was, is);
        }
    training_free(&t);
    folder_remove();
    stop();
}
END_TEST

START_TEST(the_newest_stay_and_the_newest_is_found)
{
    trama_checkpoint *found = NULL;
    start();
    folder_new();
    training t = training_new(&momentum);
    must(trama_load(t.e, folder, NULL, &found)); /* there is no such folder */
    demand(!found, "a checkpoint out of nothing");
    for (int i = 0; i < 5; i++)
        must(trama_save(t.e, folder, &(trama_save_options){.step = 10 * i, .keep = 2, .asynchronous = i % 2}));
    must(trama_save_wait(t.e));
    must(trama_save_wait(t.e));
    barrier();
    demand(!strcmp(names_in_folder(), "step-000000000030.h5 step-000000000040.h5 "), "%s", names_in_folder());
    barrier();
    if (my_rank == 0) /* found by its content */
        demand(!rename(in_folder("step-000000000030.h5"), in_folder("z.h5")), "rename");
    barrier();
    must(trama_load(t.e, folder, NULL, &found));
    demand(found && trama_checkpoint_step(found) == 40, "the newest");
    trama_checkpoint_destroy(&found);
    must(trama_load(t.e, in_folder("z.h5"), NULL, &found));
    demand(found && trama_checkpoint_step(found) == 30, "the one that is named");
    trama_checkpoint_destroy(&found);
    training_free(&t);
    folder_remove();
    stop();
}
END_TEST

TESTS(a_training_goes_on_with_the_bits_of_one_that_never_stopped, accumulated_gradients_go_on,
      any_mesh_goes_on_from_any_other, hdf5_reads_the_file, every_type_comes_back,
      states_are_chosen_renamed_and_converted, the_newest_stay_and_the_newest_is_found)
