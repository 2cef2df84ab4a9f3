/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a checkpoint, read: texts, and the datasets with their places. */
#include <string.h>

#include "checkpoint.h"
#include "hdf5_types.h"

/* The reverse of link_name. The caller frees. */
static char *own_name(const char *link)
{
    char *name = trama_alloc(strlen(link) + 1), *to = name;
    for (unsigned code; *link; link++)
        if (*link == '%' && strlen(link) > 2 && sscanf(link + 1, "%2X", &code) == 1) {
            *to++ = (char)code;
            link += 2;
        } else {
            *to++ = *link;
        }
    return name;
}

/* ---- Texts ---- */

static bool read_text(hid_t attribute, char **words)
{
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute), memory = -1;
    bool good = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
                H5Sget_simple_extent_npoints(space) == 1;
    size_t bytes = good ? H5Tget_size(type) : 0;
    *words = trama_alloc(bytes + 1);
    if (good) {
        memory = H5Tcopy(type);
        good = memory >= 0 && H5Aread(attribute, memory, *words) >= 0;
        H5Tclose(memory);
    }
    H5Sclose(space);
    H5Tclose(type);
    return good;
}

static herr_t take_text(hid_t root, const char *key, const H5A_info_t *info, void *data)
{
    char *words = NULL;
    hid_t attribute = H5Aopen(root, key, H5P_DEFAULT);
    if (attribute < 0)
        return -1;
    if (read_text(attribute, &words)) /* attributes of others are left alone */
        checkpoint_set(data, key, words);
    free(words);
    H5Aclose(attribute);
    return 0;
}

/* ---- Datasets ---- */

static bool is_contiguous(hid_t dataset)
{
    hid_t how = H5Dget_create_plist(dataset);
    bool contiguous = how >= 0 && H5Pget_layout(how) == H5D_CONTIGUOUS && H5Pget_external_count(how) == 0;
    H5Pclose(how);
    return contiguous;
}

static bool read_dataset(hid_t dataset, trama_checkpoint *c, const char *name)
{
    trama_shape shape;
    hid_t type = H5Dget_type(dataset);
    trama_dtype dtype = type < 0 ? TRAMA_N_DTYPES : hdf5_dtype_of(type);
    H5Tclose(type);
    if (dtype == TRAMA_N_DTYPES || !hdf5_shape_of(dataset, &shape) || !is_contiguous(dataset) ||
        !shape_check(shape, dtype, false, &(text){0}))
        return false;
    checkpoint_add(c, name, dtype, shape);
    stored_tensor *t = &c->tensors.at[c->tensors.n - 1];
    haddr_t at = t->bytes ? H5Dget_offset(dataset) : 0;
    if (t->bytes && (at == HADDR_UNDEF || at > (haddr_t)c->bytes || (haddr_t)t->bytes > (haddr_t)c->bytes - at))
        return false;
    t->at = t->bytes ? (int64_t)at : -1;
    return true;
}

static herr_t take_dataset(hid_t root, const char *link, const H5L_info_t *info, void *data)
{
    hid_t dataset = info->type == H5L_TYPE_HARD ? H5Dopen2(root, link, H5P_DEFAULT) : -1;
    if (dataset < 0)
        return -1;
    char *name = own_name(link);
    bool good = read_dataset(dataset, data, name);
    free(name);
    H5Dclose(dataset);
    return good ? 0 : -1;
}

static bool read_all(trama_checkpoint *c)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hsize_t next = 0, at = 0;
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERSION_GE(1, 12, 0) && !H5_VERSION_GE(1, 12, 1))
    H5Pset_file_locking(access, false, true); /* file systems without locks; a sealed file does not change */
#endif
    hid_t file = H5Fopen(c->path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (file < 0)
        return false;
    bool good = H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, &next, take_text, c) >= 0 &&
                H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, &at, take_dataset, c) >= 0;
    H5Fclose(file);
    return good;
}

trama_status hdf5_read_frame(trama_checkpoint *c)
{
    bool good = false;
    H5E_BEGIN_TRY
    {
        good = read_all(c);
    }
    H5E_END_TRY
    return good ? TRAMA_OK
                : checkpoint_damaged(c->path, NULL, "HDF5 cannot read it, or it has objects that are no tensors");
}
