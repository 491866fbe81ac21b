package windrow;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogColumnStat;
import org.apache.spark.sql.catalyst.catalog.CatalogColumnStat$;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedOrdering$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.Option;
import scala.Some;
import scala.math.BigInt$;
import scala.math.Ordering;

/**
 * The rows of a scan and the distinct values of its partition columns, as ANALYZE TABLE would find
 * them in the partitions that the query needs. Spark takes statistics only from a catalog's table.
 */
final class TableStatistics {
    // Of the fields of `LogicalRelation`, and of `CatalogTable`.
    private static final int CATALOG_TABLE = 2;
    private static final int STATS = 12;
    private static final Option NONE = Option.apply(null);

    private TableStatistics() {}

    /** Tells whether the session's optimizer uses statistics. */
    static boolean areUsed() {
        return SQLConf.get().cboEnabled() || SQLConf.get().planStatsEnabled();
    }

    /** Returns a scan with the statistics of the partitions that are marked, if these are known. */
    static LogicalPlan with(LogicalRelation leaf, PartitionValues values, boolean[] marks) {
        if (!TableHints.indexOf(leaf).isWhole()) return leaf;
        long count = 0;
        long bytes = 0;
        for (int i = 0; i < marks.length; i++) {
            if (!marks[i]) continue;
            if (values.rowCounts[i] < 0) return leaf;
            count += values.rowCounts[i];
            bytes += values.sizeInBytes[i];
        }
        Map columns = new HashMap();
        if (leaf.catalogTable().isDefined()) {
            Option stats = ((CatalogTable) leaf.catalogTable().get()).stats();
            if (stats.isDefined()) {
                scala.collection.Iterator pairs =
                    ((CatalogStatistics) stats.get()).colStats().iterator();
                while (pairs.hasNext()) {
                    scala.Tuple2 pair = (scala.Tuple2) pairs.next();
                    columns.put(pair._1(), pair._2());
                }
            }
        }
        HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
        for (int i = 0; i < leaf.output().size(); i++) {
            Attribute column = (Attribute) leaf.output().apply(i);
            if (files.partitionSchema().getFieldIndex(column.name()).isDefined()
                    && isEstimable(column.dataType())) {
                CatalogColumnStat known = of(column, values, marks);
                if (known != null) columns.put(column.name(), known);
            }
        }
        Object stats = new CatalogStatistics(
            BigInt$.MODULE$.apply(bytes), new Some(BigInt$.MODULE$.apply(count)),
            PythonUtils.toScalaMap(columns));
        try {
            Object[] arguments = new Object[leaf.productArity()];
            for (int i = 0; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
            arguments[CATALOG_TABLE] = new Some(table(leaf, new Some(stats)));
            return (LogicalPlan) leaf.makeCopy(arguments);
        } catch (Exception error) {
            // Of another Spark, whose tables have other fields.
            return leaf;
        }
    }

    /**
     * Tells whether Spark's estimates take statistics of a type: those of joins fail on times
     * without a time zone, and those of conditions if a float is NaN or infinite.
     */
    private static boolean isEstimable(DataType type) {
        return !(type instanceof TimestampNTZType || type instanceof FloatType
            || type instanceof DoubleType);
    }

    /** Returns what is known of a column; null if all its values are, as joins divide by none. */
    private static CatalogColumnStat of(Attribute column, PartitionValues values, boolean[] marks) {
        Object[] all = values.evaluated(column, marks);
        long nulls = 0;
        List distinct = new ArrayList(new HashSet(java.util.Arrays.asList(all)));
        distinct.remove(null);
        if (distinct.isEmpty()) return null;
        for (int i = 0; i < all.length; i++) {
            if (marks[i] && all[i] == null) nulls += values.rowCounts[i];
        }
        Option least = NONE;
        Option most = NONE;
        DataType type = column.dataType();
        if (hasBounds(type)) {
            List rows = new ArrayList();
            for (int i = 0; i < distinct.size(); i++) {
                rows.add(new GenericInternalRow(new Object[] {distinct.get(i)}));
            }
            Ordering order = InterpretedOrdering$.MODULE$.forSchema(
                (SEQ) PythonUtils.toSeq(Collections.singletonList(type)));
            least = text(column, (InternalRow) Collections.min(rows, order));
            most = text(column, (InternalRow) Collections.max(rows, order));
        }
        return new CatalogColumnStat(
            new Some(BigInt$.MODULE$.apply(distinct.size())), least, most,
            new Some(BigInt$.MODULE$.apply(nulls)), NONE, NONE, NONE,
            CatalogColumnStat$.MODULE$.VERSION());
    }

    private static boolean hasBounds(DataType type) {
        return type instanceof NumericType || type instanceof DateType
            || type instanceof TimestampType || type instanceof BooleanType;
    }

    private static Option text(Attribute column, InternalRow row) {
        DataType type = column.dataType();
        return new Some(
            CatalogColumnStat$.MODULE$.toExternalString(row.get(0, type), column.name(), type));
    }

    /** Returns the table of a scan in Spark's catalog, or one made up for it, with statistics. */
    private static Object table(LogicalRelation leaf, Option stats) throws Exception {
        Constructor constructor = CatalogTable.class.getConstructors()[0];
        Object[] fields = new Object[constructor.getParameterTypes().length];
        if (leaf.catalogTable().isDefined()) {
            CatalogTable table = (CatalogTable) leaf.catalogTable().get();
            for (int i = 0; i < fields.length; i++) fields[i] = table.productElement(i);
        } else {
            fields[0] = new TableIdentifier(TableHints.indexOf(leaf).toString());
            fields[1] = CatalogTableType$.MODULE$.EXTERNAL();
            fields[2] = CatalogStorageFormat$.MODULE$.empty();
            fields[3] = leaf.schema();
            for (int i = 4; i < fields.length; i++) {
                fields[i] = CatalogTable.class
                    .getMethod("apply$default$" + (i + 1), new Class[0])
                    .invoke(null, new Object[0]);
            }
        }
        fields[STATS] = stats;
        return constructor.newInstance(fields);
    }
}
