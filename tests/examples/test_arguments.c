/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong options and wrong files: each is answered by a message that names it, and a status that is not 0. */
#include "programs.h"
#include "suite.h"

/* ---- Options ---- */

static const wrong_use wrongs[] = {
    {"fashion_mnist --mesh foo", "--mesh", "'foo'"},
    {"fashion_mnist --mesh tp=2", "--mesh", "axis 0 is tp"},
    {"fashion_mnist --mesh 2", "--mesh", "without a name"},
    {"fashion_mnist --mesh dp=2,3", "--mesh", "axis 1"},
    {"fashion_mnist --mesh dp=0", "--mesh", "'dp=0'"},
    {"fashion_mnist --mesh dp=2,dp=2", "--mesh", "'dp=2,dp=2'"},
    {"fashion_mnist --mesh dp=2:3,3", "--mesh", "'dp=2:3,3'"},
    {"fashion_mnist --mesh ''", "--mesh", "''"},
    {"fashion_mnist --mesh", "--mesh", "requires an argument"},
    {"fashion_mnist --hidden ''", "--hidden", "''"},
    {"fashion_mnist --hidden 512,", "--hidden", "'512,'"},
    {"fashion_mnist --hidden 512,x", "--hidden", "'512,x'"},
    {"fashion_mnist --hidden 512,0", "--hidden", "'512,0'"},
    {"fashion_mnist --hidden 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "--hidden", "1 to 16"},
    {"fashion_mnist --batch 0", "--batch", "'0'"},
    {"fashion_mnist --batch 12x", "--batch", "'12x'"},
    {"fashion_mnist --batch 99999999999999999999", "--batch", "'99999999999999999999'"},
    {"fashion_mnist --epochs -1", "--epochs", "'-1'"},
    {"fashion_mnist --steps 1.5", "--steps", "'1.5'"},
    {"fashion_mnist --steps ' 5'", "--steps", "' 5'"},
    {"fashion_mnist --optimizer adagrad", "--optimizer", "'adagrad': takes adamw, adam, lamb or sgd"},
    {"fashion_mnist --lr 0", "--lr", "'0'"},
    {"fashion_mnist --lr nan", "--lr", "'nan'"},
    {"fashion_mnist --lr 1e999", "--lr", "'1e999'"},
    {"fashion_mnist --lr 0.1y", "--lr", "'0.1y'"},
    {"fashion_mnist --dtype f8", "--dtype", "'f8': takes f32, f64, bf16 or f16"},
    {"fashion_mnist --seed -1", "--seed", "'-1'"},
    {"fashion_mnist --seed 18446744073709551616", "--seed", "'18446744073709551616'"},
    {"fashion_mnist --plan=picture", "--plan", "'picture': takes table, steps or dot"},
    {"fashion_mnist --no-shuffle=1", "--no-shuffle", "doesn't allow an argument"},
    {"fashion_mnist --optimizer sgd --momentum 1", "--momentum", "'1': takes a number from 0 and below 1"},
    {"fashion_mnist --optimizer sgd --momentum -0.1", "--momentum", "'-0.1'"},
    {"fashion_mnist --momentum 0.9", "--momentum", "adamw has none"},
    {"fashion_mnist --clip 0", "--clip", "'0': takes a number above 0"},
    {"fashion_mnist --clip -1", "--clip", "'-1'"},
    {"fashion_mnist --schedule linear", "--schedule", "'linear': takes constant, cosine, step or one-cycle"},
    {"fashion_mnist --warmup -1", "--warmup", "'-1'"},
    {"fashion_mnist --loss-scale 0", "--loss-scale", "'0'"},
    {"fashion_mnist --nesterov", "--nesterov", "unrecognized"},
    {"fashion_mnist dp=2", "'dp=2'", "only options"},
    {"demo_mlp --mode pp", "--mode", "'pp': takes single, dp or mp"},
    {"demo_mlp --mode ''", "--mode", "'': takes single, dp or mp"},
    {"demo_mlp --mode", "--mode", "requires an argument"},
    {"demo_mlp --plan=picture", "--plan", "'picture': takes table, steps or dot"},
    {"demo_mlp --plan=", "--plan", "'': takes table, steps or dot"},
    {"demo_mlp --plan dot", "'dot'", "only options"},
    {"demo_mlp --plan --eager", "--plan", "eager"},
    {"demo_mlp dp", "'dp'", "only options"},
    {"hello_mesh --plan=picture", "--plan", "'picture': takes table, steps or dot"},
    {"hello_mesh --mesh 2", "--mesh", "unrecognized"},
    {"hello_mesh 2", "'2'", "only options"},
    {"trama", "trama", "a command is missing"},
    {"trama inform", "trama", "no command 'inform'"},
    {"trama ''", "trama", "no command ''"},
    {"trama --list", "--list", "unrecognized"},
    {"trama --version=3", "--version", "doesn't allow an argument"},
    {"trama info --help=all", "--help", "doesn't allow an argument"},
    {"trama info all", "trama info", "'all'"},
    {"trama info --all", "trama info", "--all"},
};

START_TEST(a_wrong_option_is_named_with_its_value)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i += suite_stride())
        run_wrong("", &wrongs[i]);
}
END_TEST

START_TEST(a_log_that_cannot_be_written_is_named)
{
    const outcome *o = run("./fashion_mnist --steps 1 --data %s --log /nonexistent/losses", scratch);
    ck_assert_int_gt(o->status, 0);
    ck_assert(contains(o->text, "--log /nonexistent/losses: No such file"));
    o = run("./fashion_mnist --steps 1 --data %s --log /dev/full", scratch);
    ck_assert_int_gt(o->status, 0);
    ck_assert(contains(o->text, "--log /dev/full: it could not be written"));
}
END_TEST

/* ---- Data ---- */

static void expect_bad_file(const char *name, const char *reason)
{
    const outcome *o = run("./fashion_mnist --data %s", scratch);
    ck_assert_msg(o->status > 0 && contains(o->text, name) && contains(o->text, reason), "%s: status %d, %.2000s",
                  reason, o->status, o->text);
    write_data();
}

START_TEST(a_missing_folder_or_file_is_named)
{
    const outcome *o = run("./fashion_mnist --data /nonexistent");
    ck_assert_int_gt(o->status, 0);
    ck_assert(contains(o->text, "/nonexistent/train-images-idx3-ubyte"));
    unlink(in_scratch("t10k-labels-idx1-ubyte"));
    expect_bad_file("t10k-labels-idx1-ubyte", "No such file");
}
END_TEST

START_TEST(a_file_of_another_kind_is_named)
{
    half train = train_half();
    write_file("train-labels-idx1-ubyte", 6, (const unsigned char *)"hello\n");
    expect_bad_file("train-labels-idx1-ubyte", "truncated");
    write_file("train-labels-idx1-ubyte", 12, (const unsigned char *)"hello hello\n");
    expect_bad_file("train-labels-idx1-ubyte", "magic number 68656c6c");
    write_idx("train-images-idx3-ubyte", 1, (int[]){TRAIN_SAMPLES}, train.labels);
    expect_bad_file("train-images-idx3-ubyte", "magic number 00000801");
    write_file("train-labels-idx1-ubyte", 0, (const unsigned char *)"");
    expect_bad_file("train-labels-idx1-ubyte", "truncated");
}
END_TEST

START_TEST(a_file_of_another_length_than_its_header_says_is_named)
{
    unsigned char labels[8 + TRAIN_SAMPLES + 1] = {0, 0, 8, 1, 0, 0, 0, TRAIN_SAMPLES};
    write_file("train-labels-idx1-ubyte", sizeof labels - 2, labels);
    expect_bad_file("train-labels-idx1-ubyte", "promises 53 bytes, 52 follow");
    write_file("train-labels-idx1-ubyte", sizeof labels, labels);
    expect_bad_file("train-labels-idx1-ubyte", "promises 53 bytes, more follow");
    labels[4] = 255;
    write_file("train-labels-idx1-ubyte", sizeof labels, labels);
    expect_bad_file("train-labels-idx1-ubyte", "promises 4278190133 bytes, 54 follow");
    labels[4] = labels[7] = 0;
    write_file("train-labels-idx1-ubyte", sizeof labels, labels);
    expect_bad_file("train-labels-idx1-ubyte", "extent 0 of dim 0");
    static const unsigned char huge[] = {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    write_file("train-images-idx3-ubyte", sizeof huge, huge);
    expect_bad_file("train-images-idx3-ubyte", "extent 4294967295 of dim 1");
}
END_TEST

START_TEST(a_damaged_archive_is_named)
{
    const char *name = "train-images-idx3-ubyte";
    text_of(run("gzip -f %s && head -c 500 %s.gz > %s", in_scratch(name), in_scratch(name), in_scratch("cut")));
    unlink(in_scratch("train-images-idx3-ubyte.gz"));
    text_of(run("cp %s %s.gz", in_scratch("cut"), in_scratch(name)));
    unlink(in_scratch(name));
    expect_bad_file("train-images-idx3-ubyte.gz", "truncated");
    text_of(run("gzip -f %s && printf X | dd of=%s.gz bs=1 seek=600 conv=notrunc", in_scratch(name), in_scratch(name)));
    expect_bad_file("train-images-idx3-ubyte.gz: ", "in"); /* "incorrect data check", "invalid block type", ... */
    unlink(in_scratch("train-images-idx3-ubyte.gz"));
}
END_TEST

START_TEST(files_that_do_not_fit_together_are_named)
{
    half train = train_half();
    write_idx("train-labels-idx1-ubyte", 1, (int[]){TRAIN_SAMPLES - 1}, train.labels);
    expect_bad_file("train-labels-idx1-ubyte", "has 52 labels");
    train.labels[7] = CLASSES;
    write_half("train", &train);
    expect_bad_file("train-labels-idx1-ubyte", "label 10 of sample 7");
    write_idx("t10k-images-idx3-ubyte", 3, (int[]){TEST_SAMPLES, ROWS, 2}, train.images);
    expect_bad_file(scratch, "20 pixels, t10k images 10");
}
END_TEST

TESTS(a_wrong_option_is_named_with_its_value, a_log_that_cannot_be_written_is_named, a_missing_folder_or_file_is_named,
      a_file_of_another_kind_is_named, a_file_of_another_length_than_its_header_says_is_named,
      a_damaged_archive_is_named, files_that_do_not_fit_together_are_named)
