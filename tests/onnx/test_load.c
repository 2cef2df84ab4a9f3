/* SPDX-License-Identifier: Apache-2.0 */
/* Models become programs: values by name, content of initializers, folded shapes, options, errors that name the node.
 */
#include "../tasks/harness.h"

#include "loaded_model.h"

/* y [N, 2] = x [N, 3] w + b */
static void make_linear(maker *m)
{
    static const float w[6] = {1, 2, 3, 4, 5, 6}, b[2] = {10, 20};
    make_begin(m, 13);
    make_input(m, "x", ONNX_FLOAT, "N,3");
    make_initializer(m, "w", ONNX_FLOAT, "3,2", w, sizeof w);
    make_initializer(m, "b", ONNX_FLOAT, "2", b, sizeof b);
    make_node(m, "Gemm", "x,w,b", "y");
    make_output(m, "y");
}

static const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* ---- Names and parameters ---- */

START_TEST(inputs_outputs_and_parameters_have_their_names)
{
    maker m;
    make_linear(&m);
    loaded l = load(&m);
    ck_assert_int_eq(trama_onnx_count(l.model, TRAMA_ONNX_INPUTS), 1);
    ck_assert_int_eq(trama_onnx_count(l.model, TRAMA_ONNX_OUTPUTS), 1);
    ck_assert_int_eq(trama_onnx_count(l.model, TRAMA_ONNX_PARAMETERS), 2);
    ck_assert_str_eq(trama_onnx_name(l.model, TRAMA_ONNX_PARAMETERS, 0), "w");
    ck_assert_str_eq(trama_onnx_name(l.model, TRAMA_ONNX_OUTPUTS, 0), "y");
    ck_assert_ptr_eq(trama_onnx_number(l.model, TRAMA_ONNX_PARAMETERS, 1), trama_onnx_find(l.model, "b"));
    ck_assert_ptr_null(trama_onnx_find(l.model, "z"));
    ck_assert_ptr_null(trama_onnx_number(l.model, TRAMA_ONNX_INPUTS, 1));
    ck_assert_ptr_null(trama_onnx_name(l.model, TRAMA_ONNX_INPUTS, -1));
    ck_assert_str_eq(trama_value_name(trama_onnx_find(l.model, "y")), "y");
    check_shape(&l, "x", TRAMA_SHAPE(TRAMA_ANY, 3));
    unload(&l);
}
END_TEST

START_TEST(an_imported_network_computes_with_its_own_parameters)
{
    maker m;
    float y[4];
    make_linear(&m);
    start();
    loaded l = load(&m);
    compute(&l, "y", ones, TRAMA_SHAPE(2, 3), y, sizeof y);
    for (int i = 0; i < 4; i++)
        demand(y[i] == (float)(i % 2 ? 12 + 20 : 9 + 10), "y %d is %g", i, (double)y[i]);
    unload(&l);
    stop();
}
END_TEST

START_TEST(an_imported_network_is_annotated_completed_and_trained)
{
    maker m;
    float w[6], first, last;
    make_linear(&m);
    start();
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    loaded l = load(&m);
    trama_value *y = trama_onnx_find(l.model, "y"), *loss = trama_mean(trama_square(y));
    trama_shard(trama_onnx_find(l.model, "x"), mesh, "S(0),R");
    trama_shard(trama_onnx_find(l.model, "w"), mesh, "R,S(1)");
    trama_optimizer sgd = trama_sgd(0.01);
    trama_target *train = trama_target_create(l.p, "train", trama_minimize(loss, &sgd), loss);
    trama_executable *e = compile(l.p);
    char *layout;
    must(trama_layout_of(e, y, &layout));
    demand(strstr(layout, "S(0),S(1)"), "y lies as %s", layout);
    trama_text_free(&layout);
    must(trama_feed(e, trama_onnx_find(l.model, "x"), ones, TRAMA_SHAPE(4, 3)));
    must(trama_run(e, train));
    must(trama_read(e, loss, &first, sizeof first));
    must(trama_read(e, trama_onnx_find(l.model, "w"), w, sizeof w));
    demand(fabs((double)first - (19.0 * 19 + 32.0 * 32) / 2) < 1e-3, "the first loss is %g", (double)first);
    /* each column of w falls by lr times its y: of dim 1, y is 19 and 32, and the mean over two columns halves 2 y */
    demand(fabs((double)w[0] - (1 - 0.01 * 19)) < 1e-5 && fabs((double)w[1] - (2 - 0.01 * 32)) < 1e-5, "w is %g, %g",
           (double)w[0], (double)w[1]);
    for (int i = 0; i < 20; i++)
        must(trama_run(e, train));
    must(trama_read(e, loss, &last, sizeof last));
    demand(last < first / 2, "the loss went from %g to %g", (double)first, (double)last);
    must(trama_executable_destroy(&e));
    unload(&l);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

START_TEST(an_initializer_that_is_also_an_input_is_a_parameter)
{
    maker m;
    make_linear(&m);
    make_input(&m, "w", ONNX_FLOAT, "3,2");
    loaded l = load(&m);
    ck_assert_int_eq(trama_onnx_count(l.model, TRAMA_ONNX_INPUTS), 1);
    ck_assert_int_eq(trama_onnx_count(l.model, TRAMA_ONNX_PARAMETERS), 2);
    unload(&l);
}
END_TEST

START_TEST(statistics_of_a_batch_norm_are_not_trained)
{
    maker m;
    make_begin(&m, 15);
    make_input(&m, "x", ONNX_FLOAT, "N,2");
    const char *const names[] = {"scale", "bias", "mean", "var"};
    for (int i = 0; i < 4; i++)
        make_initializer(&m, names[i], ONNX_FLOAT, "2", ones, 2 * sizeof *ones);
    make_node(&m, "BatchNormalization", "x,scale,bias,mean,var", "y");
    make_output(&m, "y");
    loaded l = load(&m);
    trama_optimizer sgd = trama_sgd(1);
    trama_value *step = trama_minimize(trama_mean(trama_onnx_find(l.model, "y")), &sgd);
    ck_assert_msg(step && trama_target_create(l.p, "t", step), "%s", trama_error());
    char *words = trama_program_text(l.p);
    ck_assert_msg(strstr(words, "mean f32[2] = state") && strstr(words, "scale f32[2] = parameter"), "%s", words);
    trama_text_free(&words);
    unload(&l);
}
END_TEST

START_TEST(frozen_initializers_are_constants)
{
    maker m;
    trama_onnx_options options = {.frozen = true};
    make_linear(&m);
    loaded l = load_with(&m, &options, NULL, NULL);
    ck_assert_msg(l.model != NULL, "%s", trama_error());
    ck_assert_int_eq(trama_onnx_count(l.model, TRAMA_ONNX_PARAMETERS), 0);
    unload(&l);
}
END_TEST

/* z = (x w + b + 2) times 3 */
START_TEST(initializers_without_dims_are_trained_on_request)
{
    static const float two = 2, factor = 3;
    for (int trains = 0; trains < 2; trains++) {
        maker m;
        trama_onnx_options options = {.train_scalars = trains};
        make_linear(&m);
        make_initializer(&m, "two", ONNX_FLOAT, "", &two, sizeof two);
        make_initializer(&m, "factor", ONNX_FLOAT, "", &factor, sizeof factor);
        make_node(&m, "Add", "y,two", "sum");
        make_node(&m, "Mul", "sum,factor", "z");
        loaded l = load_with(&m, &options, NULL, NULL);
        ck_assert_msg(l.model != NULL, "%s", trama_error());
        ck_assert_int_eq(trama_onnx_count(l.model, TRAMA_ONNX_PARAMETERS), trains ? 4 : 2);
        unload(&l);
    }
}
END_TEST

/* ---- Encodings ---- */

static trama_status give_bytes(void *data, const char *location, int64_t offset, int64_t bytes, void *to,
                               const char **reason)
{
    *reason = "the test gives nothing else";
    if (strcmp(location, "weights.bin") || offset != 4)
        return TRAMA_E_SYSTEM;
    memcpy(to, (const char *)data + offset, (size_t)bytes);
    return TRAMA_OK;
}

/* Every tensor holds 1, 2, 0. */
static Onnx__TensorProto *encoded(maker *m, const char *name, int32_t type)
{
    Onnx__TensorProto *t = make_initializer(m, name, type, "3", NULL, 0);
    char output[40];
    snprintf(output, sizeof output, "%s_cast", name);
    make_int(make_node(m, "Cast", name, output), "to", ONNX_DOUBLE);
    make_output(m, output);
    return t;
}

START_TEST(every_encoding_of_a_tensor_is_read)
{
    static float floats[3] = {1, 2, 0}, file[4] = {7, 1, 2, 0};
    static double doubles[3] = {1, 2, 0}, read[3];
    static int32_t small[3] = {1, 2, 0}, half[3] = {0x3c00, 0x4000, 0}, truth[3] = {1, 1, 0};
    static int64_t large[3] = {1, 2, 0};
    maker m;
    make_begin(&m, 13);
    made_raw(encoded(&m, "raw", ONNX_FLOAT), floats, sizeof floats);
    Onnx__TensorProto *t = encoded(&m, "floats", ONNX_FLOAT);
    t->n_float_data = 3, t->float_data = floats;
    t = encoded(&m, "doubles", ONNX_DOUBLE);
    t->n_double_data = 3, t->double_data = doubles;
    t = encoded(&m, "i32", ONNX_INT32);
    t->n_int32_data = 3, t->int32_data = small;
    t = encoded(&m, "u8", ONNX_UINT8);
    t->n_int32_data = 3, t->int32_data = small;
    t = encoded(&m, "f16", ONNX_FLOAT16);
    t->n_int32_data = 3, t->int32_data = half;
    t = encoded(&m, "i64", ONNX_INT64);
    t->n_int64_data = 3, t->int64_data = large;
    make_external(encoded(&m, "external", ONNX_FLOAT), "weights.bin", "4");
    t = encoded(&m, "bool", ONNX_BOOL);
    t->n_int32_data = 3, t->int32_data = truth;
    start();
    loaded l = load_with(&m, NULL, give_bytes, file);
    demand(l.model, "%s", trama_error());
    int n = trama_onnx_count(l.model, TRAMA_ONNX_OUTPUTS);
    ck_assert_int_eq(n, 9);
    for (int i = 0; i < n; i++) {
        const char *name = trama_onnx_name(l.model, TRAMA_ONNX_OUTPUTS, i);
        compute(&l, name, NULL, TRAMA_SCALAR, read, sizeof read);
        bool is_bool = !strcmp(name, "bool_cast");
        demand(read[0] == 1 && read[1] == (is_bool ? 1 : 2) && read[2] == 0, "%s: %g %g %g", name, read[0], read[1],
               read[2]);
    }
    unload(&l);
    stop();
}
END_TEST

START_TEST(tensors_with_wrong_content_are_refused)
{
    static const float w[6] = {1};
    static const struct {
        const char *dims, *reason;
        size_t bytes;
    } wrong[] = {{"3,2", "20 bytes instead of 24", 20},
                 {"3,3", "24 bytes instead of 36", 24},
                 {"9223372036854775807,9223372036854775807", "initializer 'v'", 24},
                 {"4611686018427387904", "initializer 'v'", 24},
                 {"-1", "initializer 'v'", 24},
                 {"1,1,1,1,1,1,1,1,1", "9 dims", 4}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        maker m;
        make_linear(&m);
        make_initializer(&m, "v", ONNX_FLOAT, wrong[i].dims, w, wrong[i].bytes);
        loaded l = load_with(&m, NULL, NULL, NULL);
        ck_assert_msg(!l.model && strstr(trama_error(), wrong[i].reason), "%s: %s", wrong[i].dims, trama_error());
        unload(&l);
    }
}
END_TEST

/* ---- Folding ---- */

/* x.reshape(x.size(0), -1, 2), as PyTorch exports it */
static void make_reshape(maker *m, const char *dims)
{
    make_begin(m, 13);
    make_input(m, "x", ONNX_FLOAT, dims);
    make_node(m, "Shape", "x", "shape");
    make_list(m, "zero", 0, (const int64_t[]){0});
    make_node(m, "Gather", "shape,zero", "batch");
    make_list(m, "axes", 1, (const int64_t[]){0});
    make_node(m, "Unsqueeze", "batch,axes", "batches");
    make_list(m, "rest", 2, (const int64_t[]){-1, 2});
    make_int(make_node(m, "Concat", "batches,rest", "target"), "axis", 0);
    make_node(m, "Reshape", "x,target", "y");
    make_output(m, "y");
}

START_TEST(shapes_made_of_shapes_are_folded)
{
    maker m;
    make_reshape(&m, "N,6");
    loaded l = load(&m);
    check_shape(&l, "y", TRAMA_SHAPE(TRAMA_ANY, 3, 2));
    ck_assert_ptr_null(trama_onnx_find(l.model, "target"));
    unload(&l);
    make_reshape(&m, "5,6");
    l = load(&m);
    check_shape(&l, "y", TRAMA_SHAPE(5, 3, 2));
    unload(&l);
}
END_TEST

START_TEST(named_dims_get_extents_by_the_options)
{
    maker m;
    trama_onnx_dim dims[] = {{"other", 9}, {"N", 4}};
    trama_onnx_options options = {.dims = dims, .n_dims = 2};
    make_reshape(&m, "N,6");
    loaded l = load_with(&m, &options, NULL, NULL);
    ck_assert_msg(l.model != NULL, "%s", trama_error());
    check_shape(&l, "y", TRAMA_SHAPE(4, 3, 2));
    unload(&l);
}
END_TEST

START_TEST(lists_of_numbers_are_folded_one_by_one)
{
    static const struct {
        const char *op;
        int64_t least;
    } cases[] = {{"Min", 3}, {"Max", 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int n = 1; n <= 4; n++) {
            char operands[16] = "";
            int64_t y;
            maker m;
            make_begin(&m, 13);
            for (int k = 0; k < n; k++) {
                char name[4] = {(char)('a' + k)};
                make_list(&m, name, 1, (const int64_t[]){i ? 6 - k : 3 + k});
                snprintf(operands + strlen(operands), sizeof operands - strlen(operands), "%s%s", k ? "," : "", name);
            }
            make_node(&m, cases[i].op, operands, "y");
            make_output(&m, "y");
            start();
            loaded l = load(&m);
            compute(&l, "y", NULL, TRAMA_SCALAR, &y, sizeof y);
            demand(y == cases[i].least, "%s of %d: %lld", cases[i].op, n, (long long)y);
            unload(&l);
            stop();
        }
}
END_TEST

/* Of 8 dims, and of shapes without elements. */
START_TEST(flat_and_empty_tensors_are_reshaped)
{
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "2,1,1,3,1,1,1,2");
    make_int(make_node(&m, "Flatten", "x", "all"), "axis", 8);
    make_int(make_node(&m, "Flatten", "x", "none"), "axis", 0);
    make_input(&m, "empty", ONNX_FLOAT, "0,5");
    make_list(&m, "seven", 2, (const int64_t[]){-1, 7});
    make_node(&m, "Reshape", "empty,seven", "sevens");
    make_output(&m, "all");
    make_output(&m, "none");
    make_output(&m, "sevens");
    loaded l = load(&m);
    check_shape(&l, "all", TRAMA_SHAPE(12, 1));
    check_shape(&l, "none", TRAMA_SHAPE(1, 12));
    check_shape(&l, "sevens", TRAMA_SHAPE(0, 7));
    unload(&l);
}
END_TEST

/* x.expand(-1, 4) of x [3, 1]: Where(Equal(shape, -1), ones, shape) */
START_TEST(the_expand_of_exporters_is_folded)
{
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "3,1");
    make_list(&m, "wanted", 2, (const int64_t[]){-1, 4});
    make_list(&m, "one", 2, (const int64_t[]){1, 1});
    make_list(&m, "minus", 2, (const int64_t[]){-1, -1});
    make_node(&m, "Equal", "wanted,minus", "open");
    make_node(&m, "Where", "open,one,wanted", "target");
    make_node(&m, "Expand", "x,target", "y");
    make_output(&m, "y");
    loads_as(&m, TRAMA_SHAPE(3, 4));
}
END_TEST

START_TEST(inputs_with_known_content_become_constants)
{
    static const int64_t target[2] = {3, -1};
    maker m;
    make_begin(&m, 13);
    make_input(&m, "x", ONNX_FLOAT, "12");
    make_input(&m, "target", ONNX_INT64, "2");
    make_node(&m, "Reshape", "x,target", "y");
    make_output(&m, "y");
    REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "node of 'y' (Reshape)", "operand 1", "must be a constant");
    trama_onnx_constant known = {"target", TRAMA_I64, TRAMA_SHAPE(2), target};
    trama_onnx_options options = {.constants = &known, .n_constants = 1};
    loaded l = load_with(&m, &options, NULL, NULL);
    ck_assert_msg(l.model != NULL, "%s", trama_error());
    ck_assert_int_eq(trama_onnx_count(l.model, TRAMA_ONNX_INPUTS), 1);
    check_shape(&l, "y", TRAMA_SHAPE(3, 4));
    unload(&l);
    known.dtype = TRAMA_I32;
    REFUSES(&m, &options, TRAMA_E_ARGUMENT, "'target'", "element type or shape");
    known = (trama_onnx_constant){"nothing", TRAMA_I64, TRAMA_SHAPE(2), target};
    REFUSES(&m, &options, TRAMA_E_ARGUMENT, "no input 'nothing'");
}
END_TEST

/* ---- Errors ---- */

START_TEST(unknown_ops_and_attributes_name_the_node)
{
    maker m;
    make_linear(&m);
    make_node(&m, "Frobnicate", "y", "z")->name = made_text("last");
    REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "node 'last' (Frobnicate)", "not supported");
    make_linear(&m);
    make_int(m.nodes[0], "colour", 3);
    REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "node of 'y' (Gemm)", "'colour'", "operator set 13");
    make_linear(&m);
    make_int(m.nodes[0], "alpha", 3);
    REFUSES(&m, NULL, TRAMA_E_ARGUMENT, "node of 'y' (Gemm)", "'alpha' is no float");
    make_linear(&m);
    make_node(&m, "Gelu", "y", "z");
    REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "(Gelu)", "as of operator set 13");
    make_linear(&m);
    make_node(&m, "Relu", "y", "z")->domain = made_text("com.example");
    REFUSES(&m, NULL, TRAMA_E_ARGUMENT, "(Relu)", "no operator set of 'com.example'");
}
END_TEST

START_TEST(wrong_graphs_are_refused)
{
    maker m;
    make_linear(&m);
    make_node(&m, "Add", "y,z", "z");
    REFUSES(&m, NULL, TRAMA_E_ARGUMENT, "(Add)", "'z'", "cycle");
    make_linear(&m);
    make_node(&m, "Relu", "y", "y");
    REFUSES(&m, NULL, TRAMA_E_ARGUMENT, "'y'", "taken");
    make_linear(&m);
    make_output(&m, "z");
    REFUSES(&m, NULL, TRAMA_E_ARGUMENT, "output 'z'");
    make_linear(&m);
    make_node(&m, "Add", "y", "z");
    REFUSES(&m, NULL, TRAMA_E_ARGUMENT, "(Add)", "1 operands");
    make_linear(&m);
    make_node(&m, "Add", "y,", "z");
    REFUSES(&m, NULL, TRAMA_E_ARGUMENT, "(Add)", "operand");
    make_linear(&m);
    m.model.graph = NULL;
    REFUSES(&m, NULL, TRAMA_E_ARGUMENT, "no graph");
    make_linear(&m);
    m.set.version = 22;
    REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "operator set 22");
    make_linear(&m);
    make_input(&m, "s", ONNX_STRING, "1");
    REFUSES(&m, NULL, TRAMA_E_UNSUPPORTED, "input 's'", "string");
}
END_TEST

START_TEST(errors_of_builders_name_the_node_and_the_values)
{
    maker m;
    make_linear(&m);
    make_node(&m, "MatMul", "y,w", "z")->name = made_text("second");
    REFUSES(&m, NULL, TRAMA_E_SHAPE, "node 'second' (MatMul)", "y f32[any,2]", "w f32[3,2]");
}
END_TEST

START_TEST(messages_nested_deeply_are_refused)
{
    enum { LEVELS = 20000 };
    /* a field of bytes within a field of bytes, as graph.node.attribute.g.node.attribute.g and so on */
    static const uint8_t tags[] = {7 << 3 | 2, 1 << 3 | 2, 5 << 3 | 2, 6 << 3 | 2};
    size_t n = 0, room = 8 * LEVELS;
    uint8_t *bytes = malloc(room);
    for (int i = LEVELS - 1; i >= 0; i--) { /* from the inside out, written backwards */
        size_t length = n;
        uint8_t varint[8];
        int k = 0;
        do
            varint[k++] = (uint8_t)(length & 0x7f) | (length > 0x7f ? 0x80 : 0);
        while (length >>= 7);
        while (k)
            bytes[room - ++n] = varint[--k];
        bytes[room - ++n] = i == 0 ? tags[0] : tags[1 + (i - 1) % 3];
    }
    trama_program *p = trama_program_create();
    trama_onnx_source source = {.model = bytes + room - n, .bytes = n};
    ck_assert_ptr_null(trama_onnx_create(p, &source, NULL));
    ck_assert_msg(strstr(trama_error(), "nest more than"), "%s", trama_error());
    trama_program_destroy(&p);
    free(bytes);
}
END_TEST

TESTS(inputs_outputs_and_parameters_have_their_names, an_imported_network_computes_with_its_own_parameters,
      an_imported_network_is_annotated_completed_and_trained, an_initializer_that_is_also_an_input_is_a_parameter,
      statistics_of_a_batch_norm_are_not_trained, frozen_initializers_are_constants,
      initializers_without_dims_are_trained_on_request, every_encoding_of_a_tensor_is_read,
      tensors_with_wrong_content_are_refused, shapes_made_of_shapes_are_folded, named_dims_get_extents_by_the_options,
      lists_of_numbers_are_folded_one_by_one, flat_and_empty_tensors_are_reshaped, the_expand_of_exporters_is_folded,
      inputs_with_known_content_become_constants, unknown_ops_and_attributes_name_the_node, wrong_graphs_are_refused,
      errors_of_builders_name_the_node_and_the_values, messages_nested_deeply_are_refused)
