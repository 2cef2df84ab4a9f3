/* SPDX-License-Identifier: Apache-2.0 */
/* The load of processes in a change of layout, made directly or by a route. */
#include "candidates.h"

route_hops route_hops_of(const route *r, const transfer *t)
{
    transfer to = transfer_between(r->from_mesh, &r->from, r->mesh, &r->between, &t->whole, t->element),
             from = transfer_between(r->mesh, &r->between, r->to_mesh, &r->to, &t->whole, t->element);
    return (route_hops){reshard_directly(&to, true), reshard_directly(&from, true)};
}

int64_t processes_with_some(const trama_mesh *mesh, const trama_layout *layout, const box *whole)
{
    int64_t holders = axes_size(mesh, layout_unsplit_axes(mesh, layout));
    return box_count(whole) ? holders * layout_pieces(mesh, layout, whole, whole) : 1;
}

static void raise(transfer_load *most, int64_t bytes, int64_t messages)
{
    most->bytes = max_i64(most->bytes, bytes);
    most->messages = max_i64(most->messages, messages);
}

/* Bytes that a process of the source sends on the average, where n probed targets receive of_source bytes. */
static int64_t sent_by(const transfer *t, int64_t of_source, int n)
{
    if (!of_source)
        return 0;
    double all = (double)of_source * t->to_mesh->size / (double)min_i64(n, t->to_mesh->size);
    return (int64_t)(all / (double)processes_with_some(t->from_mesh, &t->from, &t->whole));
}

transfer_load load_directly(const transfer *t, int n)
{
    transfer_load most = {0};
    int64_t of_source = 0;
    for (int i = 0; i < min_i64(n, t->to_mesh->size); i++) {
        transfer_load l = transfer_received(t, asked(t->to_mesh, i, n));
        of_source += l.of_source;
        raise(&most, l.bytes, l.messages);
    }
    most.of_source = sent_by(t, of_source, n);
    return most;
}

/* The load of a target process by id; zeros where the target mesh lacks it. position: where to look first. */
static transfer_load received_by(const transfer *t, int id, int position)
{
    int at = mesh_find_hinted(t->to_mesh, id, position);
    return at < 0 ? (transfer_load){0} : transfer_received(t, at);
}

/* A process of either mesh may receive in both hops; in the first it also sends as many messages as it receives. */
transfer_load load_of_route(const transfer *t, const route *r, int n)
{
    route_hops hops = route_hops_of(r, t);
    transfer_load most = {0};
    int64_t of_source = 0;
    const trama_mesh *meshes[] = {r->to_mesh, r->mesh};
    for (int k = 0; k < (t->one_mesh ? 1 : 2); k++)
        for (int i = 0; i < min_i64(n, meshes[k]->size); i++) {
            int at = asked(meshes[k], i, n), id = meshes[k]->ids[at];
            transfer_load a = received_by(&hops.to, id, at), b = received_by(&hops.from, id, at);
            of_source += k == 0 ? b.of_source : 0;
            raise(&most, a.bytes + b.bytes, 2 * a.messages + b.messages);
        }
    most.of_source = sent_by(&hops.from, of_source, n);
    return most;
}
