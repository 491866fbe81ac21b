package windrow;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.function.BiFunction;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.WriteFiles;
import org.apache.spark.unsafe.Platform;
import scala.Function1;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;

/**
 * A statement that writes rows to one of our tables, or deletes some, which Python carries out when
 * it runs.
 */
public final class TableInsert extends SparkPlan {
    private final transient LogicalPlan command;
    private final transient BiFunction writer;
    private final String table;
    private transient boolean isDone;

    /** Spark copies nodes by their public constructor. */
    public TableInsert(LogicalPlan command, BiFunction writer, String table) {
        this.command = command;
        this.writer = writer;
        this.table = table;
    }

    /** Returns the node for a command that writes to one of our tables; null for any other. */
    static SparkPlan of(LogicalPlan command) {
        if (command instanceof InsertIntoHadoopFsRelationCommand) {
            Option index = ((InsertIntoHadoopFsRelationCommand) command).fileIndex();
            if (index.isEmpty() || !(index.get() instanceof TableIndex)) return null;
            return new TableInsert(command, null, index.get().toString());
        }
        if (command instanceof DeleteFromTable) {
            Object table = DeletedRows.table((DeleteFromTable) command);
            if (table == null) return null;
            return new TableInsert(command, (BiFunction) table, table.toString());
        }
        if (command instanceof OverwritePartitionsDynamic) {
            // The compiler cannot tell the methods of this class apart.
            for (int i = 0; i < command.productArity(); i++) {
                Object part = command.productElement(i);
                if (!(part instanceof Option) || ((Option) part).isEmpty()) continue;
                Object write = ((Option) part).get();
                // Classes of the catalog may be loaded later than this one.
                if (write.getClass().getName().equals("windrow.TargetTable$TargetWrite")) {
                    return new TableInsert(command, (BiFunction) write, write.toString());
                }
            }
        }
        return null;
    }

    private static ObjectNode request(InsertIntoHadoopFsRelationCommand insert) {
        return describe(TableIndex.request("insert"), insert);
    }

    /** Adds to a request what a command of Spark's asks for, without its rows. */
    public static ObjectNode describe(
            ObjectNode request, InsertIntoHadoopFsRelationCommand insert) {
        request.put("overwrite", insert.mode() == SaveMode.Overwrite)
            .put("dynamic", insert.dynamicPartitionOverwrite())
            .put("if_absent", insert.ifPartitionNotExists());
        ObjectNode partition = request.putObject("partition");
        Iterator all = insert.staticPartitions().iterator();
        while (all.hasNext()) {
            Tuple2 one = (Tuple2) all.next();
            partition.put((String) one._1(), (String) one._2());
        }
        ArrayNode columns = request.putArray("columns");
        for (int i = 0; i < insert.outputColumnNames().size(); i++) {
            columns.add((String) insert.outputColumnNames().apply(i));
        }
        return request;
    }

    /** Returns a command's query without what Spark has added for its own writer. */
    public static LogicalPlan rows(InsertIntoHadoopFsRelationCommand insert) {
        LogicalPlan rows = insert.query();
        if (rows instanceof WriteFiles) rows = (LogicalPlan) rows.children().apply(0);
        if (!(rows instanceof Sort) || ((Sort) rows).global()) return rows;
        SEQ order = (SEQ) ((Sort) rows).order();
        for (int i = 0; i < order.size(); i++) {
            boolean isKey = false;
            for (int j = 0; j < insert.partitionColumns().size(); j++) {
                Expression column = (Expression) insert.partitionColumns().apply(j);
                isKey |= column.semanticEquals(((SortOrder) order.apply(i)).child());
            }
            if (!isKey) return rows;
        }
        return (LogicalPlan) rows.children().apply(0);
    }

    /** Spark may ask for the result several times. */
    @Override
    public synchronized InternalRow[] executeCollect() {
        if (!isDone) {
            if (command instanceof InsertIntoHadoopFsRelationCommand) {
                InsertIntoHadoopFsRelationCommand insert =
                    (InsertIntoHadoopFsRelationCommand) command;
                write(insert, rows(insert));
            } else if (command instanceof DeleteFromTable) {
                writer.apply(session(), DeletedRows.condition((DeleteFromTable) command));
            } else {
                writer.apply(session(), command.productElement(1));
            }
            isDone = true;
        }
        return new InternalRow[0];
    }

    private void write(InsertIntoHadoopFsRelationCommand insert, LogicalPlan rows) {
        if (writer == null) {
            ((TableIndex) insert.fileIndex().get()).write(
                request(insert), (SparkSession) session(), rows, insert.catalogTable());
            return;
        }
        Object answer =
            writer.apply(request(insert).toString(), new Object[] {session(), rows});
        if (answer instanceof String) throw new IllegalArgumentException((String) answer);
        // What Spark's own command would throw, for who catches it.
        if (answer instanceof Throwable) Platform.throwException((Throwable) answer);
    }

    @Override
    public RDD doExecute() {
        executeCollect();
        return sparkContext().emptyRDD(ClassTag$.MODULE$.Any());
    }

    @Override
    public SEQ output() {
        return (SEQ) PythonUtils.toSeq(new ArrayList());
    }

    @Override
    public SEQ children() {
        return output();
    }

    @Override
    public TreeNode mapChildren(Function1 change) {
        return this;
    }

    @Override
    public TreeNode withNewChildrenInternal(ISEQ children) {
        return this;
    }

    @Override
    public int productArity() {
        return 3;
    }

    @Override
    public Object productElement(int at) {
        return at == 0 ? command : at == 1 ? (Object) writer : table;
    }

    @Override
    public boolean canEqual(Object other) {
        return other instanceof TableInsert;
    }

    @Override
    public boolean equals(Object other) {
        return this == other;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }

    @Override
    public String nodeName() {
        return (command instanceof DeleteFromTable ? "Delete from " : "Write ") + table;
    }

    @Override
    public String simpleString(int maxFields) {
        return nodeName();
    }
}
