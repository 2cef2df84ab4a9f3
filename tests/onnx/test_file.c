/* SPDX-License-Identifier: Apache-2.0 */
/* trama_onnx_load reads files: the model, and external data that stays within the folder of the model. */
#define _GNU_SOURCE
#include "../tasks/harness.h"

#include <sys/stat.h>

#include "model_maker.h"
#include "trama_onnx.h"

static char folder[64];
static const float weights[4] = {1, 2, 3, 4};

static const char *in_folder(const char *name)
{
    static char path[4][300];
    static int at;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof path[at], "%s/%s", folder, name);
    return path[at];
}

static void write_file(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(in_folder(name), "wb");
    demand(f && fwrite(data, 1, bytes, f) == bytes && !fclose(f), "%s cannot be written", name);
}

/* A model whose only weight is external. */
static void write_model(const char *name, const char *location, const char *offset)
{
    maker m;
    size_t n;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "4");
    Onnx__TensorProto *t = make_initializer(&m, "w", ONNX_FLOAT, "4", NULL, 0);
    make_external(t, location, offset);
    make_node(&m, "Mul", "x,w", "y");
    make_output(&m, "y");
    uint8_t *bytes = make_bytes(&m, &n);
    write_file(name, bytes, n);
    free(bytes);
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/trama-onnx-XXXXXX");
    demand(mkdtemp(folder), "there is no folder");
    demand(!mkdir(in_folder("model"), 0755) && !mkdir(in_folder("model/data"), 0755), "there is no folder");
    write_file("outside.bin", weights, sizeof weights);
    write_file("model/inside.bin", weights, sizeof weights);
    write_file("model/data/deep.bin", weights, sizeof weights);
    demand(!symlink("../outside.bin", in_folder("model/leaves.bin")), "there is no link");
    demand(!symlink("data/deep.bin", in_folder("model/stays.bin")), "there is no link");
    demand(!mkfifo(in_folder("model/pipe.bin"), 0600), "there is no pipe");
}

static void remove_folder(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    demand(!system(command), "%s stays", folder);
}

static void expect_load(const char *file, trama_status status, const char *words)
{
    trama_program *p = trama_program_create();
    trama_onnx *model = trama_onnx_load(p, file, NULL);
    demand(trama_program_status(p) == status, "%s: %s instead of %s: %s", file,
           trama_status_text(trama_program_status(p)), trama_status_text(status), trama_program_error(p));
    demand(!model == (status != TRAMA_OK), "%s", file);
    demand(!words || (strstr(trama_program_error(p), words) && strstr(trama_program_error(p), file)),
           "\"%s\" does not say \"%s\"", trama_program_error(p), words);
    trama_onnx_destroy(&model);
    trama_program_destroy(&p);
}

START_TEST(external_data_is_read_within_the_folder_of_the_model)
{
    static const struct {
        const char *location, *offset, *words;
        trama_status status;
    } cases[] = {{"inside.bin", "0", NULL, TRAMA_OK},
                 {"./data/../inside.bin", "0", NULL, TRAMA_OK},
                 {"data/deep.bin", "0", NULL, TRAMA_OK},
                 {"stays.bin", "0", NULL, TRAMA_OK},
                 {"../outside.bin", "0", "leaves the folder", TRAMA_E_ARGUMENT},
                 {"data/../../outside.bin", "0", "leaves the folder", TRAMA_E_ARGUMENT},
                 {"leaves.bin", "0", "leaves the folder", TRAMA_E_ARGUMENT},
                 {"/etc/passwd", "0", "not relative", TRAMA_E_ARGUMENT},
                 {"inside.bin", "4", "too short", TRAMA_E_ARGUMENT},
                 {"inside.bin", "9223372036854775807", "too short", TRAMA_E_ARGUMENT},
                 {"inside.bin", "-4", "wrong offset", TRAMA_E_ARGUMENT},
                 {"inside.bin", "99999999999999999999", "wrong offset", TRAMA_E_ARGUMENT},
                 {"inside.bin", "4x", "wrong offset", TRAMA_E_ARGUMENT},
                 {"", "0", "no location", TRAMA_E_ARGUMENT},
                 {"missing.bin", "0", "No such file", TRAMA_E_SYSTEM},
                 {"data", "0", "Is a directory", TRAMA_E_SYSTEM},
                 {"pipe.bin", "0", "Invalid", TRAMA_E_SYSTEM}};
    make_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_model("model/m.onnx", cases[i].location, cases[i].offset);
        expect_load(in_folder("model/m.onnx"), cases[i].status, cases[i].words);
    }
    remove_folder();
}
END_TEST

START_TEST(a_folder_of_a_similar_name_is_another_folder)
{
    make_folder();
    demand(!mkdir(in_folder("model2"), 0755), "there is no folder");
    write_file("model2/other.bin", weights, sizeof weights);
    write_model("model/m.onnx", "../model2/other.bin", "0");
    expect_load(in_folder("model/m.onnx"), TRAMA_E_ARGUMENT, "leaves the folder");
    remove_folder();
}
END_TEST

START_TEST(a_file_that_is_no_model_is_refused)
{
    make_folder();
    expect_load(in_folder("missing.onnx"), TRAMA_E_SYSTEM, "No such file");
    expect_load(in_folder("model"), TRAMA_E_SYSTEM, "Is a directory");
    expect_load(in_folder("model/pipe.bin"), TRAMA_E_SYSTEM, "Invalid");
    expect_load(in_folder("outside.bin"), TRAMA_E_ARGUMENT, "no ONNX model");
    write_file("empty.onnx", "", 0);
    expect_load(in_folder("empty.onnx"), TRAMA_E_ARGUMENT, "no graph");
    remove_folder();
}
END_TEST

START_TEST(a_model_in_the_current_folder_finds_its_data)
{
    char before[300];
    make_folder();
    write_model("model/m.onnx", "inside.bin", "0");
    demand(getcwd(before, sizeof before) && !chdir(in_folder("model")), "cannot go there");
    expect_load("m.onnx", TRAMA_OK, NULL);
    demand(!chdir(before), "cannot go back");
    remove_folder();
}
END_TEST

TESTS(external_data_is_read_within_the_folder_of_the_model, a_folder_of_a_similar_name_is_another_folder,
      a_file_that_is_no_model_is_refused, a_model_in_the_current_folder_finds_its_data)
