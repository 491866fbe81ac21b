package windrow;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;

/** Spark's own scan of files, whose splits are packed into other tasks. */
public final class PlacedTasks extends RDD {
    private final RDD rows;
    private final transient Partition[] tasks;
    private final transient List hosts;

    /**
     * @param rows Spark's scan, with the partitions of its choice.
     * @param tasks How many tasks to make at most.
     * @param executors The hosts with executors; empty if they are unknown.
     */
    PlacedTasks(RDD rows, int tasks, String[] executors) {
        // As a dependency the scan would be asked for the hosts of its own partition of that number.
        super(rows.sparkContext(), (SEQ) PythonUtils.toSeq(new ArrayList()), ClassTag$.MODULE$.Any());
        this.rows = rows;
        this.hosts = new ArrayList();
        PartitionedFile[] splits = splits(rows.partitions());
        long[] sizes = new long[splits.length];
        String[][] locations = new String[splits.length][];
        for (int i = 0; i < splits.length; i++) {
            sizes[i] = splits[i].length();
            locations[i] = splits[i].locations();
        }
        List packed = new SplitPacking.Factory().packed(sizes, locations, tasks, executors);
        this.tasks = new Partition[packed.size()];
        for (int i = 0; i < this.tasks.length; i++) {
            SplitPacking.Task task = (SplitPacking.Task) packed.get(i);
            PartitionedFile[] own = new PartitionedFile[task.splits.size()];
            for (int j = 0; j < own.length; j++) {
                own[j] = splits[((Integer) task.splits.get(j)).intValue()];
            }
            this.tasks[i] = new FilePartition(i, own);
            this.hosts.add(hosts(task.host, own));
        }
    }

    /**
     * Returns a scan in tasks of its own.
     *
     * @param rows Spark's scan.
     * @param tasks What each task reads, wherever it runs.
     */
    PlacedTasks(RDD rows, Partition[] tasks) {
        super(rows.sparkContext(), (SEQ) PythonUtils.toSeq(new ArrayList()), ClassTag$.MODULE$.Any());
        this.rows = rows;
        // A scan that travels without its dependencies, which this looks up, cannot be computed.
        rows.partitions();
        this.tasks = tasks;
        this.hosts = new ArrayList();
        for (int i = 0; i < tasks.length; i++) hosts.add(PythonUtils.toSeq(new ArrayList()));
    }

    private static PartitionedFile[] splits(Partition[] partitions) {
        List splits = new ArrayList();
        for (int i = 0; i < partitions.length; i++) {
            PartitionedFile[] files = ((FilePartition) partitions[i]).files();
            for (int j = 0; j < files.length; j++) splits.add(files[j]);
        }
        return (PartitionedFile[]) splits.toArray(new PartitionedFile[splits.size()]);
    }

    /** Returns the host that a task is meant for, and those that hold as much of what it reads. */
    private static SEQ hosts(String host, PartitionedFile[] splits) {
        List hosts = new ArrayList();
        if (!host.isEmpty()) hosts.add(host);
        Map bytes = new HashMap();
        for (int i = 0; i < splits.length; i++) {
            String[] holders = splits[i].locations();
            for (int j = 0; j < holders.length; j++) {
                Long before = (Long) bytes.get(holders[j]);
                bytes.put(holders[j], Long.valueOf(
                    splits[i].length() + (before == null ? 0L : before.longValue())));
            }
        }
        Long own = (Long) bytes.get(host);
        java.util.Iterator all = bytes.keySet().iterator();
        while (own != null && all.hasNext()) {
            String other = (String) all.next();
            if (!other.equals(host) && ((Long) bytes.get(other)).compareTo(own) >= 0) hosts.add(other);
        }
        return (SEQ) PythonUtils.toSeq(hosts);
    }

    @Override
    public Partition[] getPartitions() {
        return tasks;
    }

    @Override
    public SEQ getPreferredLocations(Partition task) {
        return (SEQ) hosts.get(task.index());
    }

    @Override
    public Iterator compute(Partition task, TaskContext context) {
        return rows.iterator(task, context);
    }
}
