/* Entries of global offset tables; see got.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "record/got.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What differs between architectures: the types of the relocations of entries. */
#if defined(__x86_64__)
#define IS_ENTRY(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_ENTRY(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define IS_ENTRY(type) false
#endif

/* What an object's dynamic section says. */
struct tables {
    const ElfW(Sym) *symbols;
    const char *names;
    const ElfW(Rela) *all[2];
    size_t counts[2];
};

/* glibc has made an address of it, other linkers leave the offset. */
static const void *at(const struct dl_phdr_info *object, ElfW(Addr) where)
{
    return (const void *)(where < object->dlpi_addr ? object->dlpi_addr + where : where);
}

static bool read_tables(const struct dl_phdr_info *object, struct tables *tables)
{
    const ElfW(Dyn) *dynamic = NULL;
    *tables = (struct tables){0};
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    if (dynamic == NULL)
        return false;
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        switch (dynamic->d_tag) {
        case DT_SYMTAB: tables->symbols = at(object, dynamic->d_un.d_ptr); break;
        case DT_STRTAB: tables->names = at(object, dynamic->d_un.d_ptr); break;
        case DT_JMPREL: tables->all[0] = at(object, dynamic->d_un.d_ptr); break;
        case DT_PLTRELSZ: tables->counts[0] = dynamic->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_RELA: tables->all[1] = at(object, dynamic->d_un.d_ptr); break;
        case DT_RELASZ: tables->counts[1] = dynamic->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_PLTREL:
            if (dynamic->d_un.d_val != DT_RELA)
                return false;
            break;
        default: break;
        }
    return tables->symbols != NULL && tables->names != NULL;
}

/* Whether the page is read-only since the object's start. */
static bool is_relro(const struct dl_phdr_info *object, uintptr_t page, uintptr_t page_size)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + header->p_vaddr, end = start + header->p_memsz;
        if (header->p_type == PT_GNU_RELRO && page >= (start & -page_size) && page < (end & -page_size))
            return true;
    }
    return false;
}

static bool write_entry(const struct dl_phdr_info *object, void **entry, void *to)
{
    if (*(void *volatile *)entry == to)
        return true;
    uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)entry & -page_size;
    bool relro = is_relro(object, page, page_size);
    if (relro && mprotect((void *)page, page_size, PROT_READ | PROT_WRITE) < 0)
        return false;
    *(void *volatile *)entry = to; /* in one piece: others call through it */
    if (relro)
        mprotect((void *)page, page_size, PROT_READ);
    return true;
}

size_t got_change(const struct dl_phdr_info *object, const struct got_change *changes, size_t count)
{
    struct tables tables;
    size_t changed = 0;
    if (!read_tables(object, &tables))
        return 0;
    for (size_t table = 0; table < 2; table++)
        for (size_t i = 0; tables.all[table] != NULL && i < tables.counts[table]; i++) {
            const ElfW(Rela) *relocation = &tables.all[table][i];
            if (!IS_ENTRY(ELF64_R_TYPE(relocation->r_info)))
                continue;
            const ElfW(Sym) *symbol = &tables.symbols[ELF64_R_SYM(relocation->r_info)];
            const char *name = tables.names + symbol->st_name;
            for (size_t j = 0; j < count; j++)
                if (symbol->st_shndx == SHN_UNDEF && strcmp(name, changes[j].name) == 0)
                    changed += changes[j].to == NULL ||
                               write_entry(object, (void **)(object->dlpi_addr + relocation->r_offset), changes[j].to);
        }
    return changed;
}

bool got_range(const struct dl_phdr_info *object, uintptr_t *start, uintptr_t *end)
{
    *start = UINTPTR_MAX;
    *end = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        uintptr_t from = object->dlpi_addr + header->p_vaddr;
        if (header->p_type != PT_LOAD)
            continue;
        *start = from < *start ? from : *start;
        *end = from + header->p_memsz > *end ? from + header->p_memsz : *end;
    }
    return *start < *end;
}

struct search {
    uintptr_t address;
    struct got_change wanted;
    bool found;
};

static int search_object(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    struct search *search = data;
    uintptr_t start, end;
    if (!got_range(object, &start, &end) || search->address < start || search->address >= end)
        return 0;
    search->found = got_change(object, &search->wanted, 1) > 0;
    return 1;
}

bool got_imports(uintptr_t address, const char *name)
{
    struct search search = {address, {name, NULL}, false};
    dl_iterate_phdr(search_object, &search);
    return search.found;
}

size_t got_build_id(const struct dl_phdr_info *object, uint8_t id[GOT_BUILD_ID_MAX])
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        const char *note = (const char *)(object->dlpi_addr + header->p_vaddr), *end = note + header->p_memsz;
        if (header->p_type != PT_NOTE)
            continue;
        while ((size_t)(end - note) > sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *head = (const void *)note;
            size_t name = (head->n_namesz + 3u) & ~3u, size = (head->n_descsz + 3u) & ~3u;
            const char *content = note + sizeof *head + name;
            if (name > (size_t)(end - note) || size > (size_t)(end - note) - name)
                break;
            if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 && memcmp(note + sizeof *head, "GNU", 4) == 0) {
                size_t used = head->n_descsz < GOT_BUILD_ID_MAX ? head->n_descsz : GOT_BUILD_ID_MAX;
                memcpy(id, content, used);
                return used;
            }
            note = content + size;
        }
    }
    return 0;
}
