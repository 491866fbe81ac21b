package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.api.python.PythonUtils;
import java.util.Collections;
import scala.Option;

/** The table and the condition of a DELETE. Runs on the driver only. */
final class DeletedRows {
    private static final ObjectMapper JSON = new ObjectMapper();

    private DeletedRows() {}

    /** Returns one of our tables that a statement deletes rows from; null if it is any other. */
    static Object table(DeleteFromTable statement) {
        Object from = statement.children().apply(0);
        if (!(from instanceof DataSourceV2ScanRelation)) return null;
        Object table = ((DataSourceV2ScanRelation) from).relation().table();
        // Classes of the catalog may be loaded later than this one.
        return table.getClass().getName().equals("windrow.ErasableTable") ? table : null;
    }

    /** Returns its condition as a tree of conditions, with a text where there is none like it. */
    static String condition(DeleteFromTable statement) {
        SEQ columns = ((LogicalPlan) statement.children().apply(0)).output();
        Object condition = statement.productElement(1);
        SEQ normal = DataSourceStrategy$.MODULE$.normalizeExprs(
            (SEQ) PythonUtils.toSeq(Collections.singletonList(condition)), columns);
        return of((Expression) normal.apply(0)).toString();
    }

    private static ObjectNode of(Expression condition) {
        ObjectNode tree = JSON.createObjectNode();
        if (condition instanceof And || condition instanceof Or) {
            ArrayNode args = tree.put("op", condition instanceof And ? "and" : "or").putArray("args");
            return (ObjectNode) tree.set("args", args.add(part(condition, 0)).add(part(condition, 1)));
        }
        if (condition instanceof Not) {
            return (ObjectNode) tree.put("op", "not").set("arg", part(condition, 0));
        }
        if (condition instanceof Literal) {
            return tree.put("op", String.valueOf(((Literal) condition).value()));
        }
        if (condition instanceof Attribute && condition.dataType() instanceof BooleanType) {
            String column = ((Attribute) condition).name();
            return tree.put("op", "eq").put("column", column).put("value", true);
        }
        Option known = DataSourceStrategy$.MODULE$.translateFilter(condition, false);
        tree.put("op", (String) null);
        if (known.isDefined()) tree = Conditions.of((Filter) known.get());
        return tree.put("text", condition.sql());
    }

    private static ObjectNode part(Expression condition, int at) {
        return of((Expression) condition.children().apply(at));
    }
}
