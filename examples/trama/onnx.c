/* SPDX-License-Identifier: Apache-2.0 */
/* trama onnx: loads an ONNX model, completes its layouts on a mesh, plans it, and runs it on arrays of NumPy. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arguments.h"
#include "commands.h"
#include "file_names.h"
#include "must.h"
#include "progress.h"
#include "run_options.h"
#include "trama_onnx.h"

enum { KEY_DIM = 256, KEY_CONSTANT, KEY_TIME, MOST_PAIRS = 256, MOST_PRINTED = 8, NOMINAL = 64 };

static const struct argp_option options[] = {
    {"mesh", 'm', "SPEC", 0, "the mesh, as 2,3 or dp=2,mp=3, with weights as dp=[3,1] [one process]", 0},
    {"shard", 's', "NAME=LAYOUT", 0,
     "how an input, a parameter or another value lies on the mesh: x=S(0),R or x=[dp,-]; other values are "
     "completed",
     0},
    {"dim", KEY_DIM, "NAME=EXTENT", 0, "the extent of a dim that has a name", 0},
    {"input", 'i', "NAME=FILE", 0, "the content of an input, a file .npy, or FILE.npz:NAME", 0},
    {"constant", KEY_CONSTANT, "NAME=FILE", 0,
     "an input that is a constant, a file .npy: ops need some operands known, such as the target of Reshape", 0},
    {"output", 'o', "FOLDER", 0, "write the outputs there, as NAME.npy, with _ for letters that names of files lack",
     0},
    {"time", KEY_TIME, "N", 0, "run N more times after the first one, and print the median of their times", 0},
    {0}};

static const char doc[] =
    "Loads an ONNX model and prints its inputs, parameters and outputs with their layouts. With --input for all inputs "
    "it runs the model, and prints the first elements of the outputs or writes them. For --plan inputs without a file "
    "are "
    "zeros.\v"
    "Under mpirun the processes of the mesh are spread over the ranks.";

/* NAME=TEXT of an option. */
typedef struct pair {
    char *name;
    const char *text;
} pair;
typedef struct pairs {
    int n;
    pair at[MOST_PAIRS];
} pairs;

typedef struct request {
    const char *file, *mesh_text, *folder;
    pairs shards, dims, inputs, constants;
    plan_form plan;
    int64_t timed; /* runs */
    trama_mesh *mesh;
    trama_program *program;
    trama_onnx *model;
    trama_context *context;
    trama_executable *run;
    trama_target *target;
} request;

/* ---- Options ---- */

/* Splits at the first '=', or at the last one, since a layout has none and a name may. */
static void add_pair(struct argp_state *state, const char *option, const char *text, bool last, pairs *list)
{
    const char *split = last ? strrchr(text, '=') : strchr(text, '=');
    if (!split || split == text || !split[1])
        argp_error(state, "%s '%s': takes a name, = and its value", option, text);
    if (list->n == MOST_PAIRS)
        argp_error(state, "%s '%s': there are at most %d", option, text, MOST_PAIRS);
    list->at[list->n++] = (pair){strndup(text, (size_t)(split - text)), split + 1};
}

static const char *text_of(const pairs *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (!strcmp(list->at[i].name, name))
            return list->at[i].text;
    return NULL;
}

static void understand(struct argp_state *state, request *r)
{
    if (!r->file)
        argp_error(state, "the model is missing");
    if (r->shards.n && !r->mesh_text)
        argp_error(state, "--shard '%s': --mesh is missing", r->shards.at[0].name);
    if (r->folder && !r->inputs.n)
        argp_error(state, "--output '%s': only with --input", r->folder);
    if (r->timed && (!r->inputs.n || r->plan))
        argp_error(state, "--time %lld: only with --input, and not with --plan", (long long)r->timed);
    if (r->mesh_text)
        r->mesh = argument_mesh(state, "--mesh", r->mesh_text, 0, NULL);
    for (int i = 0; i < r->dims.n; i++)
        argument_integer(state, "--dim", r->dims.at[i].text, 0, INT64_C(1) << 48);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    request *r = state->input;
    switch (key) {
    case 'm':
        r->mesh_text = text;
        return 0;
    case 's':
        add_pair(state, "--shard", text, true, &r->shards);
        return 0;
    case KEY_DIM:
        add_pair(state, "--dim", text, true, &r->dims);
        return 0;
    case 'i':
        add_pair(state, "--input", text, false, &r->inputs);
        return 0;
    case KEY_CONSTANT:
        add_pair(state, "--constant", text, false, &r->constants);
        return 0;
    case 'o':
        r->folder = text;
        return 0;
    case KEY_TIME:
        r->timed = argument_integer(state, "--time", text, 1, 1 << 20);
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &r->plan;
        return 0;
    case ARGP_KEY_ARG:
        if (r->file)
            argp_error(state, "'%s': there is a model already, %s", text, r->file);
        r->file = text;
        return 0;
    case ARGP_KEY_END:
        understand(state, r);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The model ---- */

/* An array of NumPy. */
typedef struct npy {
    trama_dtype dtype;
    trama_shape shape;
    void *data;
} npy;

static npy read_array(const char *file)
{
    npy array;
    must(trama_read_npy(file, &array.dtype, &array.shape, &array.data));
    return array;
}

static void load(request *r)
{
    trama_onnx_dim dims[MOST_PAIRS];
    trama_onnx_constant constants[MOST_PAIRS];
    npy arrays[MOST_PAIRS];
    trama_onnx_options how = {
        .size = sizeof how, .dims = dims, .n_dims = r->dims.n, .constants = constants, .n_constants = r->constants.n};
    for (int i = 0; i < r->dims.n; i++)
        dims[i] = (trama_onnx_dim){r->dims.at[i].name, atoll(r->dims.at[i].text)};
    for (int i = 0; i < r->constants.n; i++) {
        arrays[i] = read_array(r->constants.at[i].text);
        constants[i] = (trama_onnx_constant){r->constants.at[i].name, arrays[i].dtype, arrays[i].shape, arrays[i].data};
    }
    r->program = trama_program_create();
    r->model = trama_onnx_load_at(trama_where_of(NULL, 0), r->program, r->file, &how);
    for (int i = 0; i < r->constants.n; i++)
        trama_npy_free(&arrays[i].data);
    if (!r->model)
        fail("%s", trama_error());
}

static trama_value *find(const request *r, const char *option, const char *name)
{
    trama_value *v = trama_onnx_find(r->model, name);
    if (!v)
        fail("%s '%s': the model has no such value", option, name);
    return v;
}

static void shard(request *r)
{
    trama_where nowhere = trama_where_of(NULL, 0);
    for (int i = 0; i < r->shards.n; i++)
        if (!trama_shard_at(nowhere, find(r, "--shard", r->shards.at[i].name), r->mesh, r->shards.at[i].text))
            fail("--shard '%s=%s': %s", r->shards.at[i].name, r->shards.at[i].text, trama_error());
}

/* A target of all outputs, each once. */
static void make_target(request *r)
{
    int n = 0, outputs = trama_onnx_count(r->model, TRAMA_ONNX_OUTPUTS);
    trama_value **values = must_allocate(outputs, sizeof(trama_value *));
    for (int i = 0; i < outputs; i++) {
        trama_value *y = trama_onnx_number(r->model, TRAMA_ONNX_OUTPUTS, i);
        int k = 0;
        while (k < n && values[k] != y)
            k++;
        values[k] = y;
        n += k == n;
    }
    r->target = trama_target_at(trama_where_of(NULL, 0), r->program, "outputs", n, values);
    free(values);
    if (!r->target)
        fail("%s", trama_error());
}

/* ---- The lists ---- */

static void print_value(const trama_completion *c, const char *kind, const char *name, const trama_value *v)
{
    trama_shape shape = trama_value_shape(v);
    trama_layout layout;
    printf("%-9s %s %s[", kind, name, trama_dtype_name(trama_value_dtype(v)));
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] == TRAMA_ANY ? printf("%sany", d ? "," : "")
                                  : printf("%s%lld", d ? "," : "", (long long)shape.dim[d]);
    printf("]");
    const trama_mesh *mesh = trama_completion_mesh(c, v);
    if (mesh && trama_mesh_size(mesh) > 1 && trama_completion_layout(c, v, &layout)) {
        char *text = trama_layout_text(mesh, &layout);
        printf(" as %s", text);
        trama_text_free(&text);
    }
    puts("");
}

static void print_lists(const request *r)
{
    static const char *const kinds[] = {"input", "output", "parameter"};
    trama_completion *c;
    must(trama_completion_create(r->program, NOMINAL, &c));
    for (int list = 0; list < 3; list++)
        for (int i = 0; i < trama_onnx_count(r->model, (trama_onnx_list)list); i++)
            print_value(c, kinds[list], trama_onnx_name(r->model, (trama_onnx_list)list, i),
                        trama_onnx_number(r->model, (trama_onnx_list)list, i));
    trama_completion_destroy(&c);
}

/* ---- Runs ---- */

/* Zeros of the input's shape, for a plan. */
static npy zeros(const char *name, const trama_value *input)
{
    npy array = {.dtype = trama_value_dtype(input), .shape = trama_value_shape(input)};
    int64_t count = trama_shape_count(array.shape);
    if (count < 0)
        fail("input '%s' has a dim without an extent: give --dim, or --input '%s=FILE'", name, name);
    array.data = must_allocate(count, trama_dtype_size(array.dtype));
    return array;
}

static void feed(request *r)
{
    for (int i = 0; i < r->inputs.n; i++)
        find(r, "--input", r->inputs.at[i].name);
    for (int i = 0; i < trama_onnx_count(r->model, TRAMA_ONNX_INPUTS); i++) {
        const char *name = trama_onnx_name(r->model, TRAMA_ONNX_INPUTS, i), *file = text_of(&r->inputs, name);
        trama_value *input = trama_onnx_number(r->model, TRAMA_ONNX_INPUTS, i);
        if (!file && !r->plan)
            fail("input '%s' has no content: give --input '%s=FILE'", name, name);
        npy array = file ? read_array(file) : zeros(name, input);
        if (array.dtype != trama_value_dtype(input))
            fail("--input '%s=%s': it has elements %s, and the input takes %s", name, file,
                 trama_dtype_name(array.dtype), trama_dtype_name(trama_value_dtype(input)));
        if (trama_feed(r->run, input, array.data, array.shape))
            fail("--input '%s=%s': %s", name, file ? file : "", trama_error());
        trama_npy_free(&array.data);
    }
}

static void write_output(request *r, const char *name, trama_value *y)
{
    bool first = trama_context_rank(r->context) == 0;
    npy array = {.dtype = trama_value_dtype(y)};
    must(trama_extents(r->run, y, &array.shape));
    int64_t bytes = trama_shape_count(array.shape) * (int64_t)trama_dtype_size(array.dtype);
    array.data = must_allocate(bytes, 1);
    must(trama_read(r->run, y, first ? array.data : NULL, (size_t)bytes));
    char *path = file_of_name(r->folder, name, ".npy");
    if (first)
        must(trama_write_npy(path, array.dtype, array.shape, array.data));
    free(path);
    trama_npy_free(&array.data);
}

static void print_output(request *r, const char *name, trama_value *y)
{
    char *text;
    must(trama_print(r->run, y, MOST_PRINTED, &text));
    if (trama_context_rank(r->context) == 0)
        printf("%s: %s\n", name, text);
    trama_text_free(&text);
}

static int earlier(const void *x, const void *y)
{
    return *(const double *)x > *(const double *)y ? 1 : -1;
}

/* Prints the median of the times of runs one after the other, each until its last task has ended. */
static void time_runs(request *r)
{
    double *seconds = must_allocate(r->timed, sizeof *seconds);
    for (int64_t i = 0; i < r->timed; i++) {
        const double start = clock_seconds();
        must(trama_run(r->run, r->target));
        must(trama_wait(r->run));
        seconds[i] = clock_seconds() - start;
    }
    qsort(seconds, (size_t)r->timed, sizeof *seconds, earlier);
    if (trama_context_rank(r->context) == 0)
        printf("median of %lld runs: %.3f ms\n", (long long)r->timed, 1e3 * seconds[r->timed / 2]);
    free(seconds);
}

static void give_outputs(request *r)
{
    must(trama_run(r->run, r->target));
    must(trama_wait(r->run));
    if (r->timed)
        time_runs(r);
    for (int i = 0; i < trama_onnx_count(r->model, TRAMA_ONNX_OUTPUTS); i++) {
        const char *name = trama_onnx_name(r->model, TRAMA_ONNX_OUTPUTS, i);
        trama_value *y = trama_onnx_number(r->model, TRAMA_ONNX_OUTPUTS, i);
        if (r->folder)
            write_output(r, name, y);
        else
            print_output(r, name, y);
    }
}

static void run(request *r)
{
    must(trama_start(NULL, &r->context));
    make_target(r);
    must(trama_compile(r->context, r->program, &r->run));
    feed(r);
    if (r->plan)
        must(plan_print(r->context, r->run, r->target, r->plan, 1));
    else
        give_outputs(r);
    must(trama_executable_destroy(&r->run));
    must(trama_stop(&r->context));
}

static void free_pairs(pairs *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->at[i].name);
}

int command_onnx(int argc, char **argv)
{
    const struct argp_child children[] = {{.argp = &run_argp}, {0}};
    const struct argp parser = {
        .options = options, .parser = parse_option, .args_doc = "MODEL", .doc = doc, .children = children};
    static request r;
    struct stat s;
    argp_parse(&parser, argc, argv, 0, NULL, &r);
    if (r.folder && (stat(r.folder, &s) || !S_ISDIR(s.st_mode)))
        fail("--output '%s': there is no such folder", r.folder);
    load(&r);
    shard(&r);
    if (r.inputs.n || r.plan)
        run(&r);
    else
        print_lists(&r);
    trama_onnx_destroy(&r.model);
    trama_program_destroy(&r.program);
    trama_mesh_destroy(&r.mesh);
    free_pairs(&r.shards);
    free_pairs(&r.dims);
    free_pairs(&r.inputs);
    free_pairs(&r.constants);
    return EXIT_SUCCESS;
}
