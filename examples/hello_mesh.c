/* SPDX-License-Identifier: Apache-2.0 */
/* The first lesson: a mesh, a tensor on it, a reshard, print. Any number of MPI ranks print the same:
 * examples/run hello_mesh, or examples/run --ranks 4 hello_mesh; with --plan, it prints the messages. */
#include <stdio.h>
#include <stdlib.h>

#include "run_options.h"
#include "trama.h"

/* The global value and its layout, as text. Every rank takes part, the first one prints. */
static trama_status show(trama_context *context, trama_executable *executable, const trama_value *value)
{
    char *text;
    trama_status status = trama_print(executable, value, 20, &text);
    if (status)
        return status;
    if (trama_context_rank(context) == 0)
        printf("%s\n", text);
    trama_text_free(&text);
    return TRAMA_OK;
}

int main(int argc, char **argv)
{
    plan_form plan = plan_asked_for(argc, argv, "Lays out a tensor on a mesh of four processes, and then anew.");

    /* Four logical processes, two by two. They are not MPI ranks: one rank can play them all. */
    trama_mesh *mesh = trama_mesh_create("row=2,column=2");

    /* A program is recorded first, as if for one device. */
    trama_program *program = trama_program_create();
    trama_value *x = trama_input(program, "x", TRAMA_F32, TRAMA_SHAPE(5, 4));

    /* Dim 0 of x is cut over the mesh's rows (3 + 2), dim 1 over its columns (2 + 2): each process holds one box. */
    trama_shard(x, mesh, "S(0),S(1)");

    /* The same tensor laid out anew: dim 1 cut over the mesh's rows, the same along its columns. */
    trama_value *y = trama_value_rename(trama_reshard(x, mesh, "S(1),R"), "y");
    trama_target *move = trama_target_create(program, "move", y);

    float numbers[5][4];
    for (int i = 0; i < 20; i++)
        numbers[i / 4][i % 4] = (float)i;

    /* Then it is compiled, fed and run, by all ranks together. Reading gives the global value from any layout. */
    trama_context *context = NULL;
    trama_executable *executable = NULL;
    if (trama_start(NULL, &context) || trama_compile(context, program, &executable) ||
        trama_feed(executable, x, numbers, TRAMA_SHAPE(5, 4)) ||
        (plan ? plan_print(context, executable, move, plan, 1)
              : trama_run(executable, move) || show(context, executable, x) || show(context, executable, y))) {
        fprintf(stderr, "hello_mesh: %s\n", trama_error());
        return EXIT_FAILURE;
    }
    trama_executable_destroy(&executable);
    trama_stop(&context);
    trama_program_destroy(&program);
    trama_mesh_destroy(&mesh);
    return EXIT_SUCCESS;
}
