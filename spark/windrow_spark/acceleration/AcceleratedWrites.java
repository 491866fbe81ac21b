package windrow;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import scala.Option;

/**
 * Puts writes of ours in the place of those of Spark to tables of its catalog, where Python says
 * that the rows and the partitions are the same.
 */
public final class AcceleratedWrites extends SparkStrategy {
    private final Object session;

    /** Carries out a command in Python; Spark compares the parts of nodes, which Python cannot. */
    private static final class Writer implements BiFunction {
        private final BiFunction python;

        Writer(BiFunction python) {
            this.python = python;
        }

        @Override
        public Object apply(Object request, Object arguments) {
            return python.apply(request, arguments);
        }
    }

    AcceleratedWrites(Object session) {
        this.session = session;
    }

    @Override
    public SEQ apply(LogicalPlan plan) {
        List made = new ArrayList();
        if (!AcceleratedReads.areWritesOn()) return seq(made);
        if (plan instanceof InsertIntoHadoopFsRelationCommand) {
            InsertIntoHadoopFsRelationCommand insert = (InsertIntoHadoopFsRelationCommand) plan;
            if (insert.catalogTable().isEmpty() || isOurs(insert.fileIndex())) return seq(made);
            CatalogTable table = (CatalogTable) insert.catalogTable().get();
            Object index = insert.fileIndex().isDefined() ? insert.fileIndex().get() : null;
            Object answer = AcceleratedReads.ask(
                described(insert, table),
                new Object[] {session, table, index, TableInsert.rows(insert)});
            if (answer instanceof BiFunction) {
                String name = AcceleratedReads.named(table.identifier());
                made.add(new TableInsert(plan, new Writer((BiFunction) answer), name));
            }
        } else if (plan.getClass().getSimpleName().equals("InsertIntoHiveTable")) {
            CatalogTable table = (CatalogTable) plan.productElement(0);
            AcceleratedReads.ask(
                AcceleratedReads.refused(target(table), "Spark writes it through Hive's SerDe"),
                new Object[] {session});
        }
        return seq(made);
    }

    private static boolean isOurs(Option index) {
        return index.isDefined() && index.get().getClass().getName().startsWith("windrow.");
    }

    private static String target(CatalogTable table) {
        return "INSERT " + AcceleratedReads.named(table.identifier());
    }

    private static ObjectNode described(
            InsertIntoHadoopFsRelationCommand insert, CatalogTable table) {
        ObjectNode request = AcceleratedReads.request("command");
        TableInsert.describe(request, insert);
        request.put("target", target(table));
        request.put("table", AcceleratedReads.named(table.identifier()));
        boolean partitioned = table.partitionColumnNames().size() > 0;
        request.put("mode", insert.mode().name());
        request.put("path", OwnWrites.text(insert.outputPath()));
        request.put("has_partitions", partitioned);
        request.put("in_catalog", partitioned && table.tracksPartitionsInCatalog());
        request.put("data", table.dataSchema().json());
        request.put("partition_schema", table.partitionSchema().json());
        request.put("format", insert.fileFormat().getClass().getName());
        request.put("has_buckets", insert.bucketSpec().isDefined() || table.bucketSpec().isDefined());
        AcceleratedReads.addOptions(request, insert.options());
        if (AcceleratedReads.isOff()) request.put("refusal", AcceleratedReads.OFF);
        return request;
    }

    private static SEQ seq(List list) {
        return (SEQ) PythonUtils.toSeq(list);
    }
}
