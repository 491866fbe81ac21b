package windrow;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeSet;

/**
 * Which task reads which splits, so that tasks end at about the same time, near their bytes.
 *
 * Hosts count as equally fast. Each split goes to a host that holds it; then hosts that would end late
 * leave splits to others, as far as that pays off; then each host divides its splits among its tasks.
 * Each time the largest split is the first, and goes where least has to be read: the rule of longest
 * processing times (Graham, "Bounds on multiprocessing timing anomalies", 1969).
 */
public final class SplitPacking {
    // A split takes so much longer on a host that does not hold it: an estimate.
    private static final double AWAY = 1.25;
    // To end sooner by less than this is not worth a read from another host.
    private static final long NEGLIGIBLE = 16L << 20;

    /** A task that reads some splits. */
    public static final class Task extends Reader {
        /** The host that it is meant for; empty if any host will do. */
        public final String host;

        Task(int number, String host) {
            super(number);
            this.host = host;
        }
    }

    /** A host, and the tasks that are meant for it. */
    private static final class Host extends Reader {
        final String name;
        final PriorityQueue tasks = new PriorityQueue();

        Host(int number, String name) {
            super(number);
            this.name = name;
        }
    }

    /** What reads splits. */
    public static class Reader implements Comparable {
        /** The positions of its splits, the largest first. */
        public final List splits = new ArrayList();
        final int number;
        /** How many bytes could be read until its end. */
        double end;

        Reader(int number) {
            this.number = number;
        }

        @Override
        public int compareTo(Object other) {
            Reader reader = (Reader) other;
            int order = Double.compare(end, reader.end);
            return order == 0 ? Integer.compare(number, reader.number) : order;
        }
    }

    private final long[] sizes;
    private final String[][] locations;
    private final Map byName = new HashMap();
    /** All hosts, the one that ends first at the head. */
    private final TreeSet hosts = new TreeSet();

    private SplitPacking(long[] sizes, String[][] locations) {
        this.sizes = sizes;
        this.locations = locations;
    }

    /** Packs splits; an object, so that tests in Python can call it. */
    public static final class Factory {
        /**
         * Returns the tasks that read something, those that take longest first.
         *
         * @param sizes The bytes of each split.
         * @param locations The hosts that hold each split.
         * @param tasks How many tasks to make at most.
         * @param executors The hosts with executors; those that hold splits if there are none.
         */
        public List packed(long[] sizes, String[][] locations, int tasks, String[] executors) {
            SplitPacking packing = new SplitPacking(sizes, locations);
            packing.start(tasks, executors);
            packing.place();
            packing.even();
            return packing.tasks();
        }
    }

    private void start(int tasks, String[] executors) {
        Map bytes = new HashMap();
        for (int i = 0; i < executors.length; i++) bytes.put(executors[i], Long.valueOf(0L));
        for (int i = 0; i < sizes.length; i++) {
            for (int j = 0; j < locations[i].length; j++) {
                Long before = (Long) bytes.get(locations[i][j]);
                if (before == null && executors.length > 0) continue;
                bytes.put(locations[i][j], Long.valueOf(
                    sizes[i] + (before == null ? 0L : before.longValue())));
            }
        }
        if (bytes.isEmpty()) bytes.put("", Long.valueOf(0L));
        String[] names = (String[]) bytes.keySet().toArray(new String[bytes.size()]);
        Arrays.sort(names, new MostBytesFirst(bytes));
        for (int i = 0; i < tasks; i++) {
            String name = names[i % names.length];
            if (i < names.length) byName.put(name, new Host(i, name));
            ((Host) byName.get(name)).tasks.add(new Task(i, name));
        }
        hosts.addAll(byName.values());
    }

    private void place() {
        Integer[] order = new Integer[sizes.length];
        for (int i = 0; i < order.length; i++) order[i] = Integer.valueOf(i);
        Arrays.sort(order, new LargestFirst(sizes));
        List homeless = new ArrayList();
        for (int i = 0; i < order.length; i++) {
            Host home = home(order[i]);
            if (home == null) homeless.add(order[i]);
            else add(order[i], home);
        }
        for (int i = 0; i < homeless.size(); i++) {
            add((Integer) homeless.get(i), (Host) hosts.first());
        }
    }

    /** Returns the host that holds a split and ends first; null if none holds it. */
    private Host home(Integer split) {
        Host home = null;
        String[] holders = locations[split.intValue()];
        for (int i = 0; i < holders.length; i++) {
            Host holder = (Host) byName.get(holders[i]);
            if (holder != null && (home == null || holder.compareTo(home) < 0)) home = holder;
        }
        return home;
    }

    private void add(Integer split, Host host) {
        hosts.remove(host);
        host.splits.add(split);
        host.end += time(split, host.name);
        hosts.add(host);
    }

    private double time(Integer split, String host) {
        long size = sizes[split.intValue()];
        return Arrays.asList(locations[split.intValue()]).contains(host) ? size : AWAY * size;
    }

    /** Lets hosts that end late leave splits to those that end first. */
    private void even() {
        Object[] late = hosts.descendingSet().toArray();
        for (int i = 0; i < late.length; i++) {
            Host from = (Host) late[i];
            Object[] splits = from.splits.toArray();
            from.splits.clear();
            for (int j = 0; j < splits.length; j++) {
                Integer split = (Integer) splits[j];
                Host to = (Host) hosts.first();
                if (to.end + time(split, to.name) + NEGLIGIBLE >= from.end) {
                    from.splits.add(split);
                    continue;
                }
                hosts.remove(from);
                from.end -= time(split, from.name);
                hosts.add(from);
                add(split, to);
            }
        }
    }

    private List tasks() {
        List tasks = new ArrayList();
        Object[] all = hosts.toArray();
        for (int i = 0; i < all.length; i++) {
            Host host = (Host) all[i];
            Object[] splits = host.splits.toArray();
            Arrays.sort(splits, new LargestFirst(sizes));
            for (int j = 0; j < splits.length; j++) {
                Task task = (Task) host.tasks.poll();
                task.splits.add(splits[j]);
                task.end += time((Integer) splits[j], host.name);
                host.tasks.add(task);
            }
            java.util.Iterator own = host.tasks.iterator();
            while (own.hasNext()) {
                Task task = (Task) own.next();
                if (!task.splits.isEmpty()) tasks.add(task);
            }
        }
        tasks.sort(new LongestFirst());
        return tasks;
    }

    private static final class LargestFirst implements Comparator {
        private final long[] sizes;

        LargestFirst(long[] sizes) {
            this.sizes = sizes;
        }

        @Override
        public int compare(Object one, Object other) {
            return Long.compare(sizes[((Integer) other).intValue()], sizes[((Integer) one).intValue()]);
        }
    }

    private static final class MostBytesFirst implements Comparator {
        private final Map bytes;

        MostBytesFirst(Map bytes) {
            this.bytes = bytes;
        }

        @Override
        public int compare(Object one, Object other) {
            int order = ((Long) bytes.get(other)).compareTo((Long) bytes.get(one));
            return order == 0 ? ((String) one).compareTo((String) other) : order;
        }
    }

    private static final class LongestFirst implements Comparator {
        @Override
        public int compare(Object one, Object other) {
            int order = Double.compare(((Task) other).end, ((Task) one).end);
            return order == 0 ? Integer.compare(((Task) one).number, ((Task) other).number) : order;
        }
    }
}
