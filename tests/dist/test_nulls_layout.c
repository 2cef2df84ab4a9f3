/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of every function of shapes, meshes, layouts and their changes. */
#include "null_program.h"
#include "trama_reshard_plan.h"

START_TEST(shapes_and_types)
{
    trama_dtype dtype;
    REFUSES(trama_dtype_parse(NULL, &dtype));
    REFUSES(trama_dtype_parse("f32", NULL));
    GIVES(-1, trama_shape_of(1, NULL).ndim);
    trama_text_free(NULL);
    GIVES(0, trama_shape_of(0, NULL).ndim);
}
END_TEST

START_TEST(meshes)
{
    int two[] = {2}, ids[] = {0, 1};
    const char *names[] = {"a"}, *unnamed[] = {NULL};
    trama_mesh *none = NULL, *made;
    SAYS(p, trama_mesh_create(NULL));
    SAYS(p, trama_mesh_create_ids(1, NULL, names, ids));
    ck_assert_ptr_nonnull(made = trama_mesh_create_ids(1, two, NULL, NULL));
    trama_mesh_destroy(&made);
    ck_assert_ptr_nonnull(made = trama_mesh_create_ids(1, two, unnamed, ids));
    trama_mesh_destroy(&made);
    SAYS(p, trama_mesh_child(NULL, 1, two, names, ids));
    SAYS(p, trama_mesh_child(mesh, 1, NULL, names, ids));
    SAYS(p, trama_mesh_child(mesh, 1, two, names, NULL));
    ck_assert_ptr_nonnull(made = trama_mesh_child(mesh, 1, two, NULL, ids));
    trama_mesh_destroy(&made);
    SAYS(p, trama_mesh_weighted(NULL, 0, two));
    SAYS(p, trama_mesh_weighted(mesh, 0, NULL));
    GIVES(0, trama_mesh_weight(NULL, 0, 0));
    trama_mesh_destroy(NULL);
    trama_mesh_destroy(&none);
    GIVES(0, trama_mesh_ndim(NULL));
    GIVES(0, trama_mesh_size(NULL));
    GIVES(0, trama_mesh_extent(NULL, 0));
    GIVES(NULL, trama_mesh_axis_name(NULL, 0));
    GIVES(-1, trama_mesh_id(NULL, 0));
    PASSES(trama_mesh_parent(NULL));
    GIVES(false, trama_mesh_equal(NULL, mesh));
    GIVES(false, trama_mesh_equal(mesh, NULL));
    SAYS(p, trama_mesh_text(NULL));
}
END_TEST

START_TEST(texts_of_layouts)
{
    trama_layout made = layout;
    int mapping[] = {0, -1};
    unsigned char mask[] = {1, 1, 1, 1};
    REFUSES(trama_layout_parse(NULL, 2, "R,R", &made));
    REFUSES(trama_layout_parse(mesh, 2, NULL, &made));
    REFUSES(trama_layout_parse(mesh, 2, "R,R", NULL));
    SAYS(p, trama_layout_text(NULL, &layout));
    SAYS(p, trama_layout_text(mesh, NULL));
    SAYS(p, trama_layout_mapping(NULL, 2, &layout));
    SAYS(p, trama_layout_mapping(mesh, 2, NULL));
    REFUSES(trama_layout_from_mapping(NULL, 2, mapping, &made));
    REFUSES(trama_layout_from_mapping(mesh, 2, NULL, &made));
    TAKES(trama_layout_from_mapping(mesh, 0, NULL, &made));
    REFUSES(trama_layout_from_mapping(mesh, 2, mapping, NULL));
    made = layout;
    REFUSES(trama_layout_mask(NULL, 2, mask, &made));
    TAKES(trama_layout_mask(mesh, 2, NULL, &made));
    REFUSES(trama_layout_mask(mesh, 2, mask, NULL));
    GIVES(false, trama_layout_equal(NULL, &layout));
    GIVES(false, trama_layout_equal(&layout, NULL));
}
END_TEST

START_TEST(boxes_of_layouts)
{
    int64_t offset[2], extent[2];
    int term;
    bool held;
    char *words = NULL;
    REFUSES(trama_layout_box(NULL, &layout, shape, 0, offset, extent, &term, &held));
    REFUSES(trama_layout_box(mesh, NULL, shape, 0, offset, extent, &term, &held));
    REFUSES(trama_layout_box(mesh, &layout, shape, 0, NULL, extent, &term, &held));
    REFUSES(trama_layout_box(mesh, &layout, shape, 0, offset, NULL, &term, &held));
    TAKES(trama_layout_box(mesh, &layout, shape, 0, offset, extent, NULL, &held));
    TAKES(trama_layout_box(mesh, &layout, shape, 0, offset, extent, &term, NULL));
    REFUSES(trama_layout_describe(NULL, &layout, shape, &words));
    REFUSES(trama_layout_describe(mesh, NULL, shape, &words));
    REFUSES(trama_layout_describe(mesh, &layout, shape, NULL));
    REFUSES(trama_layout_describe_some(NULL, &layout, shape, 0, 1, &words));
    REFUSES(trama_layout_describe_some(mesh, NULL, shape, 0, 1, &words));
    REFUSES(trama_layout_describe_some(mesh, &layout, shape, 0, 1, NULL));
    REFUSES(trama_layout_summary(NULL, &layout, shape, &words));
    REFUSES(trama_layout_summary(mesh, NULL, shape, &words));
    REFUSES(trama_layout_summary(mesh, &layout, shape, NULL));
    ck_assert_ptr_null(words);
}
END_TEST

static void tell(void *closure, int made, int processes)
{
    ck_assert(!closure && made <= processes);
}

START_TEST(plans_of_a_change_of_layout)
{
    trama_reshard_plan *plan = NULL;
    trama_reshard_lack lack;
    const trama_move *moves;
    REFUSES(trama_reshard_plan_create(NULL, &layout, mesh, &layout, TRAMA_F32, shape, &plan));
    REFUSES(trama_reshard_plan_create(mesh, NULL, mesh, &layout, TRAMA_F32, shape, &plan));
    REFUSES(trama_reshard_plan_create(mesh, &layout, NULL, &layout, TRAMA_F32, shape, &plan));
    REFUSES(trama_reshard_plan_create(mesh, &layout, mesh, NULL, TRAMA_F32, shape, &plan));
    REFUSES(trama_reshard_plan_create(mesh, &layout, mesh, &layout, TRAMA_F32, shape, NULL));
    REFUSES(trama_reshard_plan_told(NULL, &layout, mesh, &layout, TRAMA_F32, shape, tell, &lack, &plan));
    REFUSES(trama_reshard_plan_told(mesh, NULL, mesh, &layout, TRAMA_F32, shape, tell, &lack, &plan));
    REFUSES(trama_reshard_plan_told(mesh, &layout, NULL, &layout, TRAMA_F32, shape, tell, &lack, &plan));
    REFUSES(trama_reshard_plan_told(mesh, &layout, mesh, NULL, TRAMA_F32, shape, tell, &lack, &plan));
    REFUSES(trama_reshard_plan_told(mesh, &layout, mesh, &layout, TRAMA_F32, shape, tell, &lack, NULL));
    TAKES(trama_reshard_plan_told(mesh, &layout, mesh, &layout, TRAMA_F32, shape, NULL, &lack, &plan));
    trama_reshard_plan_destroy(&plan);
    TAKES(trama_reshard_plan_told(mesh, &layout, mesh, &layout, TRAMA_F32, shape, tell, NULL, &plan));
    trama_reshard_plan_destroy(&plan);
    REFUSES(trama_reshard_lacking(NULL, &layout, mesh, &layout, TRAMA_F32, shape, &lack));
    REFUSES(trama_reshard_lacking(mesh, NULL, mesh, &layout, TRAMA_F32, shape, &lack));
    REFUSES(trama_reshard_lacking(mesh, &layout, NULL, &layout, TRAMA_F32, shape, &lack));
    REFUSES(trama_reshard_lacking(mesh, &layout, mesh, NULL, TRAMA_F32, shape, &lack));
    REFUSES(trama_reshard_lacking(mesh, &layout, mesh, &layout, TRAMA_F32, shape, NULL));
    trama_reshard_plan_destroy(NULL);
    trama_reshard_plan_destroy(&plan);
    GIVES(0, trama_reshard_plan_moves(NULL, &moves));
    GIVES(0, trama_reshard_plan_cost(NULL).processes);
    TAKES(trama_reshard_plan_create(mesh, &layout, mesh, &layout, TRAMA_F32, shape, &plan));
    GIVES(0, trama_reshard_plan_moves(plan, NULL));
    trama_reshard_plan_destroy(&plan);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        shapes_and_types, meshes, texts_of_layouts, boxes_of_layouts, plans_of_a_change_of_layout,
    };
    return suite_run("nulls_layout", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
