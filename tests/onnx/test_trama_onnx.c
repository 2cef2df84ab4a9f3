/* SPDX-License-Identifier: Apache-2.0 */
/* trama onnx, as a user calls it: lists, layouts, plans, runs on arrays of NumPy, and every wrong use. */
#include "../examples/programs.h"

#include "model_maker.h"

/* y [N, 2] = x [N, 3] w + b, and an output whose name no file can have */
static void make_model(void)
{
    static const float w[6] = {1, 2, 3, 4, 5, 6}, b[2] = {10, 20};
    maker m;
    size_t n;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "N,3");
    make_initializer(&m, "w", ONNX_FLOAT, "3,2", w, sizeof w);
    make_initializer(&m, "b", ONNX_FLOAT, "2", b, sizeof b);
    make_node(&m, "Gemm", "x,w,b", "y");
    make_node(&m, "Neg", "y", "/neg/out");
    make_output(&m, "y");
    make_output(&m, "/neg/out");
    uint8_t *bytes = make_bytes(&m, &n);
    write_file("m.onnx", n, bytes);
    free(bytes);
}

/* An array as NumPy 1.26 writes it: the header of numpy.save, by hand. */
static void write_array(const char *name, const char *header, const void *data, size_t bytes)
{
    char file[512];
    size_t n = 10 + 118;
    memset(file, ' ', n);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(file + 10, header, strlen(header));
    file[n - 1] = '\n';
    memcpy(file + n, data, bytes);
    write_file(name, n + bytes, (const unsigned char *)file);
}

#define HEADER_OF_X "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }"

static void make_files(void)
{
    static const float ones[12] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2};
    make_model();
    write_array("x.npy", HEADER_OF_X, ones, sizeof ones);
    write_array("fortran.npy", "{'descr': '<f4', 'fortran_order': True, 'shape': (4, 3), }", ones, sizeof ones);
    write_array("big.npy", "{'descr': '>f4', 'fortran_order': False, 'shape': (4, 3), }", ones, sizeof ones);
    write_array("short.npy", HEADER_OF_X, ones, sizeof ones - 4);
    write_array("long.npy", HEADER_OF_X, ones, sizeof ones);
    write_array("i64.npy", "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }", ones, sizeof ones);
    write_array("flat.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (12,), }", ones, sizeof ones);
    write_array("dims.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }", ones, 48);
    FILE *f = fopen(in_scratch("long.npy"), "ab");
    fputc(0, f);
    fclose(f);
}

/* ---- Lists and plans ---- */

START_TEST(lists_have_names_types_and_completed_layouts)
{
    make_files();
    ck_assert_str_eq(text_of(run("./trama onnx %s", in_scratch("m.onnx"))),
                     "input     x f32[any,3]\noutput    y f32[any,2]\noutput    /neg/out f32[any,2]\n"
                     "parameter w f32[3,2]\nparameter b f32[2]\n");
    ck_assert_str_eq(text_of(run("./trama onnx %s -m dp=2,mp=2 --shard 'x=S(0),R' --shard 'w=R,S(1)' --dim N=5",
                                 in_scratch("m.onnx"))),
                     "input     x f32[5,3] as S(0),R\noutput    y f32[5,2] as S(0),S(1)\n"
                     "output    /neg/out f32[5,2] as S(0),S(1)\nparameter w f32[3,2] as R,S(1)\n"
                     "parameter b f32[2] as R,S(0)\n");
}
END_TEST

START_TEST(a_plan_needs_no_input_where_extents_are_known)
{
    make_files();
    const char *text =
        text_of(run("./trama onnx %s -m dp=2 --shard 'x=S(0)' --dim N=4 --plan=steps", in_scratch("m.onnx")));
    ck_assert_msg(strstr(text, "matmul") && strstr(text, "x#0[0:2,0:3]") && strstr(text, "x#1[2:4,0:3]"), "%s", text);
}
END_TEST

/* ---- Runs ---- */

START_TEST(results_are_printed_or_written)
{
    /* x is ones in two rows and twos in two: x w is 9 and 12, then the double */
    static const float y[8] = {19, 32, 19, 32, 28, 44, 28, 44};
    static const struct {
        const char *launcher, *mesh;
    } tries[] = {{"", ""},
                 {"", "-m dp=2 --shard 'x=S(0)'"},
                 {"", "-m dp=2,mp=2 -s 'x=S(0),S(1)' -s 'w=S(0),S(1)'"},
                 {MPIRUN "2 ", "-m dp=2,mp=2 -s 'x=S(0),S(1)' -s 'w=S(0),S(1)'"}};
    make_files();
    for (size_t i = 0; i < sizeof tries / sizeof *tries - !TRAMA_HAVE_MPI; i++) {
        const char *text = text_of(run("%s./trama onnx %s %s --input x=%s", tries[i].launcher, in_scratch("m.onnx"),
                                       tries[i].mesh, in_scratch("x.npy")));
        ck_assert_msg(strstr(text, "y: ") && strstr(text, "19 32") && strstr(text, "-19 -32"), "%s", text);
        ck_assert_str_eq(text_of(run("%s./trama onnx %s %s --input x=%s --output %s", tries[i].launcher,
                                     in_scratch("m.onnx"), tries[i].mesh, in_scratch("x.npy"), scratch)),
                         "");
        char file[300];
        FILE *f = fopen(in_scratch("y.npy"), "rb");
        ck_assert(f && fread(file, 1, sizeof file, f) == 128 + sizeof y);
        fclose(f);
        ck_assert(!memcmp(
            file, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, ), } ", 66));
        ck_assert(file[127] == '\n' && !memcmp(file + 128, y, sizeof y));
        text_of(run("cmp -s %s %s; test $? = 1 && rm %s %s", in_scratch("y.npy"), in_scratch("_neg_out.npy"),
                    in_scratch("y.npy"), in_scratch("_neg_out.npy")));
    }
}
END_TEST

START_TEST(numpy_reads_the_results)
{
    if (run("python3 -c 'import numpy'")->status) {
        printf("skipped: there is no numpy\n");
        return;
    }
    make_files();
    text_of(run("./trama onnx %s --input x=%s --output %s", in_scratch("m.onnx"), in_scratch("x.npy"), scratch));
    ck_assert_str_eq(text_of(run("python3 -c \"import numpy; y = numpy.load('%s'); print(y.dtype, y.shape, y[3])\"",
                                 in_scratch("y.npy"))),
                     "float32 (4, 2) [28. 44.]\n");
}
END_TEST

/* ---- Wrong uses ---- */

START_TEST(wrong_uses_are_named)
{
    make_files();
    char model[128];
    strcpy(model, in_scratch("m.onnx"));
    const struct {
        const char *arguments, *option, *value;
    } uses[] = {{"", "model", "missing"},
                {"M M", "there is a model already", "m.onnx"},
                {"F/missing.onnx", "missing.onnx", "No such file"},
                {"F/x.npy", "x.npy", "no ONNX model"},
                {"M --mesh dp=0", "--mesh", "dp=0"},
                {"M --shard x", "--shard", "'x'"},
                {"M --shard 'x=S(0)'", "--shard", "--mesh is missing"},
                {"M --mesh 2 --shard 'z=S(0)'", "--shard", "'z'"},
                {"M --mesh 2 --shard 'x=S(2)'", "--shard", "x=S(2)"},
                {"M --dim N=-1", "--dim", "-1"},
                {"M --dim N=x", "--dim", "'x'"},
                {"M --plan", "--dim", "input 'x'"},
                {"M --output F", "--output", "only with --input"},
                {"M --output F/none --input x=F/x.npy", "--output", "no such folder"},
                {"M --input z=F/x.npy", "--input", "'z'"},
                {"M --input x=F/none.npy", "none.npy", "No such file"},
                {"M --input x=F/m.onnx", "m.onnx", "no array of NumPy"},
                {"M --input x=F/fortran.npy", "fortran.npy", "order of Fortran"},
                {"M --input x=F/big.npy", "big.npy", "'>f4'"},
                {"M --input x=F/short.npy", "short.npy", "fewer elements"},
                {"M --input x=F/long.npy", "long.npy", "more elements"},
                {"M --input x=F/dims.npy", "dims.npy", "shape"},
                {"M --input x=F/i64.npy", "--input", "elements i64"},
                {"M --input x=F/flat.npy", "--input", "[12]"},
                {"M --constant z=F/x.npy", "'z'", "no input"}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        char line[1000] = "";
        for (const char *at = uses[i].arguments; *at; at++) {
            char one[2] = {*at, 0};
            bool word = at == uses[i].arguments || at[-1] == ' ' || at[-1] == '=';
            bool whole = at[1] == ' ' || at[1] == 0 || at[1] == '/';
            strcat(line, *at == 'M' && word && whole ? model : *at == 'F' && word && whole ? scratch : one);
        }
        run_wrong("trama onnx ", &(wrong_use){line, uses[i].option, uses[i].value});
    }
}
END_TEST

START_TEST(help_names_every_option)
{
    static const char *const words[] = {"MODEL",
                                        "--mesh=SPEC",
                                        "--shard=NAME=LAYOUT",
                                        "--dim=NAME=EXTENT",
                                        "--input=NAME=FILE",
                                        "--constant=NAME=FILE",
                                        "--output=FOLDER",
                                        "--plan",
                                        "--device"};
    const char *text = text_of(run("./trama onnx --help"));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(contains(text, words[i]), "--help lacks %s: %.4000s", words[i], text);
    ck_assert(contains(text_of(run("./trama --help")), "\n  onnx "));
}
END_TEST

TESTS(lists_have_names_types_and_completed_layouts, a_plan_needs_no_input_where_extents_are_known,
      results_are_printed_or_written, numpy_reads_the_results, wrong_uses_are_named, help_names_every_option)
