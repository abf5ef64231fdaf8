/* A Spin model of the ring's protocol (ring.c): all interleavings and deaths, within small bounds.
 * That each access has the memory order which this needs, docs/ring.md argues.
 *
 *     spin -a ring.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan
 *
 * PRODUCERS write into CHUNKS that hold CAPACITY records, the first of them RECORDS, each other one
 * OTHERS; a dumper stores and frees them. A step (an atomic block) touches one shared word, as the C code does, or plain ones that
 * nobody else looks at yet. At any step any of them may die instead; DEATHS of dumpers, of which
 * each is followed by a new one, or by none for ever. Checked in all of it:
 *
 *   - in the end all that was published is in the database, once and in order; what was dropped is told;
 *   - in the end all chunks are free, also those of producers that died with one in hand;
 *   - producers never wait for the dumper: they come to their end with none. (One that waits would be
 *     an invalid end state.)
 *   - who has found the ring full learns that it is not, at the latest when a pass ends.
 *
 * Each of these breaks the protocol, and the tests want Spin to see how:
 *
 *   -DLIVENESS_AFTER_LOOK   who has ended is asked after the look
 *   -DPUBLISHED_FIRST       published is read before state
 *   -DRELEASE_FIRST         chunks are released before COMMIT
 *   -DFREE_FIRST            state becomes FREE before published becomes 0
 *   -DATTACH_IS_SILENT      a dumper that attaches does not move `freed`
 *   -DFREED_AFTER_SEARCH    `freed` is read after the search for a free chunk
 *   -DWAIT_WHEN_FULL        a producer waits for a free chunk
 *   -DEXITED_WHILE_WRITING  a producer says that it has ended, and another thread of it publishes a record more
 */
#ifndef RECORDS
#define RECORDS 3
#endif
#ifndef OTHERS
#define OTHERS 1
#endif
#ifndef CAPACITY
#define CAPACITY 2
#endif
#define PRODUCERS 2
#define CHUNKS 2
#define DEATHS 1
#define NONE 255

#define FREE 0
#define CLAIMED 1
#define SEALED 2

typedef chunk_header {
    byte state, owner;          /* one word; the owner's number is its stream's too */
    byte published;             /* records */
    byte sequence, base, lost   /* base: number of the first record in its stream */
}
chunk_header chunk[CHUNKS];
byte freed;

/* Of each producer: whether it has ended, and what really happened. */
bool gone[PRODUCERS];
byte published[PRODUCERS], dropped[PRODUCERS];
byte lost[PRODUCERS], freed_seen[PRODUCERS]; /* as in struct stream */

/* The database: rows by (stream, sequence); count 0: no such row. */
typedef row { byte count, base, lost }
row rows[PRODUCERS * RECORDS];
byte deaths;

/* ---- producers ---------------------------------------------------------------------------- */

#define MAY_DIE :: atomic { end_it(); goto end }
#define TO_WRITE (self == 0 -> RECORDS : OTHERS)

inline end_it() {
    gone[self] = true;
    attempts = 0; mine = NONE; used = 0; sequence = 0; now = 0; index = 0; tried = 0
}

inline publish() {
    chunk[mine].published = chunk[mine].published + 1;
    used++;
    assert(chunk[mine].published == used);
    published[self]++;
    lost[self] = 0
}

inline seal() {
    if
    :: mine != NONE ->
        chunk[mine].state = SEALED;
        sequence = sequence + (used > 0 -> 1 : 0);
        mine = NONE;
        used = 0
    :: else
    fi
}

inline drop() {
    lost[self]++;
    dropped[self]++;
    now = 0; tried = 0; index = 0
}

proctype producer(byte self) {
    byte attempts, mine = NONE, used, sequence, now, index, tried;
next:
    if
#ifdef EXITED_WHILE_WRITING
    :: atomic { mine != NONE && !gone[self] -> gone[self] = true; goto next }
#endif
    :: atomic { attempts < TO_WRITE && mine != NONE && used < CAPACITY -> attempts++; publish(); goto next }
    :: atomic { attempts < TO_WRITE && (mine == NONE || used == CAPACITY) -> attempts++; seal() }
    :: atomic { attempts == TO_WRITE -> seal(); goto ending }
    MAY_DIE
    fi;
#ifdef WAIT_WHEN_FULL
    chunk[0].state == FREE || chunk[1].state == FREE;
#endif
    if
    :: atomic {
        now = freed + 1;
        if
        :: freed_seen[self] == now -> drop(); goto next
        :: else -> skip
        fi;
        if /* begin with any */
        :: index = 0
        :: index = 1
        fi
    }
    MAY_DIE
    fi;
search:
    if
    :: atomic { tried < CHUNKS -> /* compare and swap */
        if
        :: chunk[index].state == FREE ->
            chunk[index].state = CLAIMED;
            chunk[index].owner = self;
            mine = index;
            /* Nobody looks at the rest before the first publish. */
            chunk[mine].sequence = sequence;
            chunk[mine].base = published[self];
            chunk[mine].lost = lost[self];
            freed_seen[self] = 0;
            now = 0; tried = 0; index = 0
        :: else ->
            tried++;
            index = (index + 1) % CHUNKS;
            goto search
        fi
    }
    :: atomic { tried == CHUNKS ->
#ifdef FREED_AFTER_SEARCH
        now = freed + 1;
#endif
        freed_seen[self] = now;
        drop();
        goto next
    }
    MAY_DIE
    fi;
    if
    :: atomic { publish(); goto next }
    MAY_DIE
    fi;
ending:
    atomic { end_it() }
end:
    skip
}

/* ---- dumper ------------------------------------------------------------------------------- */

/* With it goes what it knew, and the transaction under way. */
#define DUMPER_MAY_DIE \
    :: atomic { deaths < DEATHS -> deaths++; forget(); if :: goto attach :: goto end fi }

inline forget() {
    i = 0;
    do
    :: i < CHUNKS ->
        seen[i].state = 0; seen[i].owner = 0; seen[i].published = 0;
        seen[i].sequence = 0; seen[i].base = 0; seen[i].lost = 0;
        i++
    :: else -> i = 0; break
    od;
    do
    :: i < PRODUCERS -> ended[i] = false; i++
    :: else -> i = 0; break
    od
}

inline ask_who_ended() {
    do
    :: i < PRODUCERS -> ended[i] = gone[i]; i++
    :: else -> i = 0; break
    od
}

inline read_state() {
    seen[i].state = chunk[i].state;
    seen[i].owner = chunk[i].owner
}

inline read_published() {
    seen[i].published = chunk[i].published;
    seen[i].sequence = chunk[i].sequence;
    seen[i].base = chunk[i].base;
    seen[i].lost = chunk[i].lost
}

inline commit() {
    do
    :: i < CHUNKS ->
        if
        :: seen[i].state != FREE && seen[i].published > 0 ->
            key = seen[i].owner * RECORDS + seen[i].sequence;
            assert(rows[key].count == 0
                   || rows[key].count <= seen[i].published
                      && rows[key].base == seen[i].base && rows[key].lost == seen[i].lost);
            rows[key].count = seen[i].published;
            rows[key].base = seen[i].base;
            rows[key].lost = seen[i].lost;
            key = 0
        :: else
        fi;
        i++
    :: else -> i = 0; break
    od
}

#define MAY_RELEASE (seen[i].state == SEALED || seen[i].state == CLAIMED && ended[seen[i].owner])

inline check_who_found_it_full() {
    do
    :: i < PRODUCERS ->
        do
        :: key < CHUNKS -> assert(chunk[key].state != FREE || freed_seen[i] != freed + 1); key++
        :: else -> key = 0; break
        od;
        i++
    :: else -> i = 0; break
    od
}

inline check_all() {
    do
    :: i < CHUNKS -> assert(chunk[i].state == FREE && chunk[i].published == 0); i++
    :: else -> i = 0; break
    od;
    do
    :: i < PRODUCERS ->
        do
        :: key < RECORDS && rows[i * RECORDS + key].count > 0 ->
            assert(rows[i * RECORDS + key].base == count);
            count = count + rows[i * RECORDS + key].count;
            told = told + rows[i * RECORDS + key].lost;
            key++
        :: else -> break
        od;
        do
        :: key < RECORDS -> assert(rows[i * RECORDS + key].count == 0); key++
        :: else -> break
        od;
        assert(count == published[i] && told + lost[i] == dropped[i]);
        count = 0; told = 0; key = 0;
        i++
    :: else -> break
    od
}

active proctype dumper() {
    byte i, key, count, told;
    bool ended[PRODUCERS];
    chunk_header seen[CHUNKS];

    atomic {
        do
        :: i < PRODUCERS -> run producer(i); i++
        :: else -> i = 0; break
        od
    }
attach:
#ifndef ATTACH_IS_SILENT
    freed++;
#endif
pass:
#ifndef LIVENESS_AFTER_LOOK
    atomic { ask_who_ended() }
#endif
look:
#ifdef PUBLISHED_FIRST
    atomic { read_published() }
    atomic { read_state(); i++; if :: i < CHUNKS -> goto look :: else -> i = 0 fi }
#else
    atomic { read_state() }
    if
    :: atomic { read_published(); i++; if :: i < CHUNKS -> goto look :: else -> i = 0 fi }
    DUMPER_MAY_DIE
    fi;
#endif
#ifdef LIVENESS_AFTER_LOOK
    atomic { ask_who_ended() }
#endif
#ifndef RELEASE_FIRST
    if
    :: atomic { commit() }
    DUMPER_MAY_DIE
    fi;
#endif
release:
    if
    :: atomic { i < CHUNKS && MAY_RELEASE ->
#ifdef FREE_FIRST
        chunk[i].state = FREE
#else
        chunk[i].published = 0
#endif
    }
    :: atomic { i < CHUNKS && !MAY_RELEASE -> i++; goto release }
    :: atomic { i == CHUNKS -> i = 0; goto released }
    DUMPER_MAY_DIE
    fi;
    if
    :: atomic {
#ifdef FREE_FIRST
        chunk[i].published = 0
#else
        chunk[i].state = FREE
#endif
    }
    DUMPER_MAY_DIE
    fi;
    if
    :: atomic { freed++; i++; goto release }
    DUMPER_MAY_DIE
    fi;
released:
#ifdef RELEASE_FIRST
    if
    :: atomic { commit() }
    DUMPER_MAY_DIE
    fi;
#endif
    atomic {
        check_who_found_it_full();
        do
        :: i < PRODUCERS && ended[i] -> i++
        :: i < PRODUCERS && !ended[i] -> forget(); goto pass
        :: else -> break
        od;
        i = 0;
        check_all()
    }
end:
    skip
}
